// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HeldRow: a row that a group of threads reads once and keeps in registers.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_HELD_ROW_H_
#define HOLDFAST_KERNELS_CUDA_HELD_ROW_H_

#include <cstdint>

#include "kernels/cuda/group.h"
#include "kernels/cuda/packs.h"

namespace holdfast::cuda {

// Elements that a thread keeps of a row.
template <typename T>
inline constexpr int kHeld = 128 / static_cast<int>(sizeof(T));
// On the host a thread is the whole group.
#if defined(__CUDACC__)
inline constexpr int kHoldingThreads = 1;
#else
inline constexpr int kHoldingThreads = kBlockThreads;
#endif

// Threads for rows of n elements of which each holds a part; 0: they are too
// long.
template <typename T>
int HeldGroup(int64_t n) {
  for (int size : {1, kWarp, kBlockThreads}) {
    if (n <= size * (size == 1 ? 16 : kHeld<T>)) return size;
  }
  return 0;
}

// The part of thread `rank` among `size`: packs size * kWidth elements apart,
// of kPart elements at most.
template <typename S, int kWidth,
          int kPart = kHoldingThreads* kHeld<ComputeOf<S>>>
struct HeldRow {
  using T = ComputeOf<S>;
  static constexpr int kPacks = kPart / kWidth;

  T v[kPacks][kWidth];
  int n, first, step;

  // Elements that are not neighbours are `apart`, and each is a pack.
  HOLDFAST_HD HeldRow(const S* row, int count, int rank, int size,
                      int64_t apart = 1)
      : n(count), first(rank * kWidth), step(size * kWidth) {
    HOLDFAST_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int i = first + p * step;
      if (i < n) LoadPack<kWidth>(row + i * apart, v[p]);
    }
  }

  // visit(pack, its first element's place in the row) for this thread's packs.
  template <typename Visit>
  HOLDFAST_HD void ForEachPack(Visit visit) const {
    HOLDFAST_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int i = first + p * step;
      if (i < n) visit(p, i);
    }
  }
  // The sum of what term(element) gives for this thread's elements.
  template <typename Term>
  HOLDFAST_HD double Sum(Term term) const {
    T sum = 0;
    ForEachPack([&](int p, int) {
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) sum += term(v[p][e]);
    });
    return sum;
  }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_HELD_ROW_H_
