// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DeviceMappings: a session's segments of GPU memory that this process has open
// (Read.export_memory). Each is opened once, and closed when the session is and
// nothing looks at it any more.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_CLIENT_DEVICE_MAPPINGS_H_
#define HOLDFAST_CLIENT_DEVICE_MAPPINGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "proto/holdfast.pb.h"

namespace holdfast::client {

namespace wire = ::holdfast::v1;

// A segment in this process's addresses.
struct DeviceMapping {
  DeviceMapping() = default;
  ~DeviceMapping();
  DeviceMapping(const DeviceMapping&) = delete;
  DeviceMapping& operator=(const DeviceMapping&) = delete;

  char* base = nullptr;
  uint64_t bytes = 0;
  int ordinal = 0;  // the GPU's number in this process
  wire::Gpu gpu;
  // Whose it is: the session's token and the segment's number there.
  std::string session;
  uint64_t segment = 0;
  uint32_t place = 0;  // the GPU's number at the daemon
  // What opened it.
  std::string handle;
};

// The number by which this process knows a GPU of the daemon's.
absl::StatusOr<int> OrdinalOf(const wire::Gpu& gpu, uint32_t place);

// The mapping of any session that the address lies in; null: none.
std::shared_ptr<DeviceMapping> FindMapping(const void* address);

class DeviceMappings {
 public:
  absl::StatusOr<std::shared_ptr<DeviceMapping>> Open(
      const wire::Gpu& gpu, const wire::ExportedMemory& memory,
      const std::string& session);
  // Lets go of all.
  void Clear();

 private:
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint64_t>, std::shared_ptr<DeviceMapping>>
      segments_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_DEVICE_MAPPINGS_H_
