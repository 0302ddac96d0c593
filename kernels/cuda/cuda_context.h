// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaContext: what a CUDA kernel function may use besides its tensors. Scratch
// memory is on the device and freed in the stream's order, so that it may be
// used by whatever the function has launched.
// Thread-safety: one kernel function at a time.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_CONTEXT_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_CONTEXT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel.h"
#include "kernels/numerics.h"

namespace holdfast {

class Device;  // kernels/device.h

namespace cuda {

class CudaLibraries;  // kernels/cuda/cuda_libraries.h

class CudaContext : public KernelContext {
 public:
  // A cudaStream_t; null on the host.
  virtual void* stream() const = 0;
  // cuBLASLt and cuDNN. REQUIRES: on a device.
  virtual CudaLibraries& libraries() = 0;

  // The CPU, for ops without a CUDA kernel (host_ops.h); may be null.
  virtual Device* host() = 0;

  // Waits for what was launched before.
  virtual absl::Status CopyToHost(void* host, const void* device,
                                  size_t bytes) = 0;
  // `host` may change when it returns.
  virtual absl::Status CopyToDevice(void* device, const void* host,
                                    size_t bytes) = 0;
  virtual absl::Status CopyOnDevice(void* to, const void* from,
                                    size_t bytes) = 0;
  virtual absl::Status FillBytes(void* device, uint8_t value, size_t bytes) = 0;
  // Whether the last launch was accepted.
  virtual absl::Status LaunchStatus() = 0;

  Numerics numerics;  // of the session whose op runs
  // While launches are noted: where each replay's random numbers begin, from
  // which `philox` is a distance (random_draws.h). On the device; else null.
  const PhiloxState* first_draw = nullptr;
  // Attrs::data_checked of the op that runs.
  bool data_checked = false;
};

inline CudaContext& Cuda(KernelContext& context) {
  return static_cast<CudaContext&>(context);
}

// What a kernel function returns when Scratch gave it nothing.
inline absl::Status NoScratch() {
  return absl::ResourceExhaustedError(
      "no scratch memory is left on the device. Free tensors.");
}

// Scratch memory for n elements of T; null if there is none.
template <typename T>
T* ScratchOf(KernelContext& context, int64_t n) {
  return static_cast<T*>(context.Scratch(n > 0 ? n * sizeof(T) : 1));
}

}  // namespace cuda
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_CONTEXT_H_
