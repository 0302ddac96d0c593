// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits a row of windows for vectorised pooling: windows that hang over an
// edge one by one, the others a chunk at a time, each in its lane of a vector.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_WINDOW_ROWS_H_
#define HOLDFAST_KERNELS_CPU_WINDOW_ROWS_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/vectorised.h"
#include "kernels/window_axis.h"

namespace holdfast::cpu {

// 256 bits: images are small, and rows of 14 or 7 windows must not end up in
// scalar tails.
template <typename T>
struct WindowVec {
  static constexpr int kLanes = 32 / sizeof(T);
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T V __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  typedef Int I
      __attribute__((vector_size(32), aligned(alignof(Int)), may_alias));

  // out[i] = p[i * kStride]; touches nothing after the last of them.
  template <int kStride>
  static HOLDFAST_INLINE void Load(const T* p, V* out) {
    const V low = *reinterpret_cast<const V*>(p);
    if constexpr (kStride == 1) {
      *out = low;
    } else {
      static_assert(kStride == 2, "one or two");
      const V high = *reinterpret_cast<const V*>(p + kLanes - 1);
      if constexpr (kLanes == 8) {
        *out = __builtin_shuffle(low, high, I{0, 2, 4, 6, 9, 11, 13, 15});
      } else {
        *out = __builtin_shuffle(low, high, I{0, 2, 5, 7});
      }
    }
  }
};

// chunk(j) covers windows [j, j + kLanes), one(j) window j. Chunks may overlap:
// what they write must not depend on what was there.
template <int kLanes, typename Chunk, typename One>
HOLDFAST_INLINE void ForEachWindow(const WindowAxis& w, bool chunks,
                                   Chunk chunk, One one) {
  int64_t first = w.FirstWindow(0), end = w.EndWindow(w.kernel - 1);
  if (!chunks || end - first < kLanes) first = end = 0;
  for (int64_t j = 0; j < first; ++j) one(j);
  for (int64_t j = first; j < end; j += kLanes) {
    chunk(j + kLanes <= end ? j : end - kLanes);
  }
  for (int64_t j = end; j < w.out; ++j) one(j);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_WINDOW_ROWS_H_
