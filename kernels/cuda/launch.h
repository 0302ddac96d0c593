// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How the CUDA kernels loop: ForEach runs a function object for 0 .. n-1, a
// thread for each. The same sources are also compiled for the host, where the
// loop is an ordinary one: all arithmetic on indices and elements is tested
// without a GPU that way (kernels/cuda/on_host.h).
//
// A function object is made in a function template, never inside a generic
// lambda (nvcc's rule): dispatch on types calls the template. Neither may a
// lambda of a kernel name a variable first inside `if constexpr`.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_LAUNCH_H_
#define HOLDFAST_KERNELS_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_context.h"
#include "ops/host_device.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define HOLDFAST_LAMBDA __host__ __device__
#else
#define HOLDFAST_LAMBDA
#endif

namespace holdfast::cuda {

inline constexpr int kBlockThreads = 256;
// Enough to fill any GPU many times over; each thread then loops.
inline constexpr int64_t kMaxBlocks = 1 << 16;

// Blocks that cover n elements, `per_block` each at a time. REQUIRES: n > 0.
inline int64_t GridBlocks(int64_t n, int64_t per_block) {
  return std::min(kMaxBlocks, (n + per_block - 1) / per_block);
}

#if defined(__CUDACC__)

inline cudaStream_t StreamOf(KernelContext& context) {
  return static_cast<cudaStream_t>(Cuda(context).stream());
}

template <typename F>
__global__ void __launch_bounds__(kBlockThreads) ForEachKernel(int64_t n, F f) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < n; i += step) {
    f(i);
  }
}

template <typename F>
absl::Status ForEach(KernelContext& context, int64_t n, F f) {
  if (n <= 0) return absl::OkStatus();
  ForEachKernel<<<static_cast<unsigned>(GridBlocks(n, kBlockThreads)),
                  kBlockThreads, 0, StreamOf(context)>>>(n, f);
  return Cuda(context).LaunchStatus();
}

#else

template <typename F>
absl::Status ForEach(KernelContext&, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) f(i);
  return absl::OkStatus();
}

#endif

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_LAUNCH_H_
