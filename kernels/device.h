// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Device: what executes kernels and holds memory. Asynchronous by contract:
// Launch enqueues on a stream, Synchronize waits for it; the CPU device does
// its work inside Launch. Devices other than the CPU come from shared
// libraries loaded at start.
// Thread-safety: Launch and Synchronize from the worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_DEVICE_H_
#define HOLDFAST_SERVER_EXEC_DEVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "server/memory/device_memory.h"

namespace holdfast {

class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;  // "cpu"

  // Memory for one session. `shared`: segments that a local client may map.
  virtual std::unique_ptr<DeviceMemory> CreateMemory(bool shared) = 0;

  // Enqueues one kernel. Errors that are known at once (argument values on
  // the CPU) are returned; later ones surface in Synchronize.
  virtual absl::Status Launch(StreamId stream, PhiloxState philox,
                              const Attrs& attrs,
                              absl::Span<const TensorView> inputs,
                              absl::Span<const TensorView> outputs) = 0;
  // The sizes that only the inputs' elements tell (SizesFn, kernels/kernel.h);
  // waits for them. The op's own Launch follows, and nothing between the two.
  virtual absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                                    absl::Span<const TensorView> inputs,
                                    absl::Span<int64_t> sizes) = 0;
  // Blocks until everything enqueued on `stream` is done.
  virtual absl::Status Synchronize(StreamId stream) = 0;

  // Synchronous copies between device memory and host memory.
  virtual absl::Status CopyFromHost(void* device, const void* host,
                                    size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device,
                                  size_t bytes) = 0;
};

// `threads` kernels may use, >= 1.
std::unique_ptr<Device> NewCpuDevice(int threads);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_DEVICE_H_
