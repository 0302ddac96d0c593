// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ForEachTile: ForEach (launch.h) in two halves, so that a thread has several
// elements' loads under way before it waits for the first: one load of four
// bytes a thread is a third of what it takes to keep a GPU's memory busy.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_TILES_H_
#define HOLDFAST_KERNELS_CUDA_TILES_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace holdfast::cuda {

inline constexpr int kTileEach = 4;  // elements of a thread

#if defined(__CUDACC__)

template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    ForEachTileKernel(int64_t n, F f) {
  constexpr int64_t kTile = kBlockThreads * kTileEach;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kTile;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
       first < n; first += step) {
    if (first + kTile - kBlockThreads < n) {
      typename F::Loaded loaded[kTileEach];
#pragma unroll
      for (int k = 0; k < kTileEach; ++k) {
        loaded[k] = f.Load(first + k * kBlockThreads);
      }
#pragma unroll
      for (int k = 0; k < kTileEach; ++k) {
        f.Store(first + k * kBlockThreads, loaded[k]);
      }
      continue;
    }
    for (int64_t i = first; i < n; i += kBlockThreads) f.Store(i, f.Load(i));
  }
}

// f.Store(i, f.Load(i)) for 0 <= i < n; Load gives an F::Loaded. What one i
// stores no other i loads.
template <typename F>
absl::Status ForEachTile(KernelContext& context, int64_t n, F f) {
  if (n <= 0) return absl::OkStatus();
  ForEachTileKernel<<<static_cast<unsigned>(
                          GridBlocks(n, kBlockThreads * kTileEach)),
                      kBlockThreads, 0, StreamOf(context)>>>(n, f);
  return Cuda(context).LaunchStatus();
}

#else

template <typename F>
absl::Status ForEachTile(KernelContext&, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) f.Store(i, f.Load(i));
  return absl::OkStatus();
}

#endif

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_TILES_H_
