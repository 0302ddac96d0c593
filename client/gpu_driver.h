// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GpuDriver: the few functions of NVIDIA's driver that exchange memory with
// other processes. The driver is opened when a program first shares memory of a
// GPU; nothing is linked against it. Everything happens in the GPU's primary
// context, which is the one of PyTorch, CuPy and CUDA's runtime.
// Thread-safety: all methods from any thread; the thread's own context stays.
#ifndef HOLDFAST_CLIENT_GPU_DRIVER_H_
#define HOLDFAST_CLIENT_GPU_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast::client {

class GpuDriver {
 public:
  // Of this process. InvalidArgument: there is no driver, or it is too old.
  static absl::StatusOr<const GpuDriver*> Get();

  // The number by which this process knows the GPU at a PCI address.
  // InvalidArgument: it does not see that GPU (CUDA_VISIBLE_DEVICES).
  absl::StatusOr<int> OrdinalOf(const std::string& bus_id) const;
  absl::StatusOr<std::string> BusIdOf(int ordinal) const;
  // Whose memory it is.
  absl::StatusOr<int> OrdinalOfMemory(const void* address) const;

  // Another process's memory; Close it.
  absl::StatusOr<void*> Open(int ordinal, absl::string_view handle) const;
  void Close(int ordinal, void* base) const;

  // The allocation that an address of this process lies in, and its handle for
  // other processes. An error: memory that cannot be shared.
  struct Allocation {
    const void* base = nullptr;
    size_t bytes = 0;
    std::string handle;
  };
  absl::StatusOr<Allocation> Share(int ordinal, const void* address) const;

  // Waits for a stream (CUDA's number of it; 1 is the legacy default one), or
  // for all that this process has given the GPU.
  absl::Status Synchronize(int ordinal, uintptr_t stream) const;
  absl::Status SynchronizeAll(int ordinal) const;
  absl::Status CopyToHost(int ordinal, void* host, const void* device,
                          size_t bytes) const;

 private:
  struct Functions;
  explicit GpuDriver(const Functions* functions) : call_(*functions) {}
  static absl::StatusOr<const GpuDriver*> Load();
  absl::Status StatusOf(int result, const char* what) const;
  // Runs `body`, which returns a CUresult, in the GPU's primary context.
  template <typename Body>
  absl::Status In(int ordinal, const char* what, Body body) const;

  const Functions& call_;  // lives as long as the process
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_GPU_DRIVER_H_
