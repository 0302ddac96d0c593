// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Work that threads share: ForEachRow gives each row to a group of 1, 32 or 256
// threads, whose members take every size-th element and put their results
// together with Group::Reduce. Order is fixed by the sizes alone, so that equal
// calls give equal bits. On the host a group is one thread.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_GROUP_H_
#define HOLDFAST_KERNELS_CUDA_GROUP_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/launch.h"

namespace holdfast::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kMaxGroupBytes = 32;  // of a value that Reduce combines

struct Group {
  int rank = 0;  // of this thread
  int size = 1;
  char* shared = nullptr;  // for groups of more than a warp

  HOLDFAST_HD bool first() const { return rank == 0; }

#if defined(__CUDACC__)
  // The value of the thread `by` ranks above in the warp; beyond it, its own.
  template <typename T>
  __device__ static T Above(T value, int by) {
    static_assert(sizeof(T) % 4 == 0 && sizeof(T) <= kMaxGroupBytes);
    uint32_t words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (uint32_t& word : words) word = __shfl_down_sync(~0u, word, by);
    T above;
    memcpy(&above, words, sizeof(T));
    return above;
  }
  template <typename T>
  __device__ static T OfFirst(T value) {
    uint32_t words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (uint32_t& word : words) word = __shfl_sync(~0u, word, 0);
    T first;
    memcpy(&first, words, sizeof(T));
    return first;
  }
#endif

  // Waits until every member has come here; what they wrote before is then seen
  // by all of them. Every member calls it.
  HOLDFAST_HD void Sync() const {
#if defined(__CUDA_ARCH__)
    if (size == kWarp) __syncwarp();
    if (size > kWarp) __syncthreads();
#endif
  }

  // combine over the members' values, the same for all of them. Every member
  // calls it. `combine` is associative; its first argument is of lower rank.
  template <typename T, typename Combine>
  HOLDFAST_HD T Reduce(T value, [[maybe_unused]] Combine combine) const {
#if defined(__CUDA_ARCH__)
    if (size == 1) return value;
    for (int by = kWarp / 2; by > 0; by /= 2) {
      value = combine(value, Above(value, by));
    }
    if (size == kWarp) return OfFirst(value);
    T* of_warps = reinterpret_cast<T*>(shared);
    __syncthreads();  // whoever still reads the last result
    if (rank % kWarp == 0) of_warps[rank / kWarp] = value;
    __syncthreads();
    value = of_warps[0];
    for (int w = 1; w < size / kWarp; ++w) value = combine(value, of_warps[w]);
    return value;
#else
    return value;
#endif
  }
};

// Threads for rows of `count` elements.
inline int GroupSize(int64_t count) {
  return count <= 16 ? 1 : count <= 1024 ? kWarp : kBlockThreads;
}

#if defined(__CUDACC__)

template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    ForEachRowKernel(int64_t rows, int group_size, F f) {
  __shared__ alignas(16) char shared[kMaxGroupBytes * kBlockThreads / kWarp];
  Group group;
  group.size = group_size;
  group.rank = static_cast<int>(threadIdx.x) % group_size;
  group.shared = shared;
  const int per_block = kBlockThreads / group_size;
  const int64_t step = static_cast<int64_t>(gridDim.x) * per_block;
  // All members of a group are in the loop together, and so are whole warps
  // where a group is one, and whole blocks where it is a block.
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * per_block +
                     static_cast<int>(threadIdx.x) / group_size;
       row < rows; row += step) {
    f(group, row);
  }
}

// f(group, row) for 0 <= row < rows by groups of `size` threads: 1, kWarp or
// kBlockThreads.
template <typename F>
absl::Status ForEachRow(KernelContext& context, int64_t rows, int size, F f) {
  if (rows <= 0) return absl::OkStatus();
  ForEachRowKernel<<<static_cast<unsigned>(
                         GridBlocks(rows, kBlockThreads / size)),
                     kBlockThreads, 0, StreamOf(context)>>>(rows, size, f);
  return Cuda(context).LaunchStatus();
}

#else

template <typename F>
absl::Status ForEachRow(KernelContext&, int64_t rows, int, F f) {
  const Group alone;
  for (int64_t row = 0; row < rows; ++row) f(alone, row);
  return absl::OkStatus();
}

#endif

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_GROUP_H_
