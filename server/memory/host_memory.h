// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostMemory: the CPU device's segments. For a local session each segment is a
// memfd whose descriptor the client may map, so that arrays and tensors are
// the same memory; otherwise anonymous memory.
//
// Pages are taken when a segment is made: a full machine, or a full control
// group of the daemon's, is an error here, never a SIGBUS in the middle of a
// kernel or an end of the process. memfds are not bounded by the size of
// /dev/shm.
//
// Pages of a freed segment go back to the system at once, also where a client
// still has it mapped: it reads zeros there, and what it writes is its own
// memory, not the daemon's.
#ifndef HOLDFAST_SERVER_MEMORY_HOST_MEMORY_H_
#define HOLDFAST_SERVER_MEMORY_HOST_MEMORY_H_

#include <atomic>
#include <cstdint>

#include "kernels/device_memory.h"

namespace holdfast {

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(bool shared) : shared_(shared) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override;
  void FreeSegment(const MemorySegment& segment) override;
  bool any_thread() const override { return true; }

  // The CPU device is synchronous: every point has passed.
  uint64_t RecordPoint(StreamId) override { return 0; }
  bool PointPassed(uint64_t) override { return true; }
  void WaitPoint(uint64_t) override {}

 private:
  const bool shared_;
  std::atomic<uint64_t> next_id_{1};
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_HOST_MEMORY_H_
