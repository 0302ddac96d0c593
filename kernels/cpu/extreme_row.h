// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The largest or smallest of adjacent elements, in vectors of 32 bytes (GCC's
// vector extension): comparisons of longer ones become scalar code, and so do
// those of lanes in an array where a row has few elements more than a vector.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_EXTREME_ROW_H_
#define HOLDFAST_KERNELS_CPU_EXTREME_ROW_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/vectorised.h"

namespace holdfast::cpu {

template <typename T, bool kMax>
struct ExtremeRow {
  static constexpr int kCount = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  typedef T Half __attribute__((vector_size(16)));

  // a or b; NaN beats everything. Numbers or vectors of them.
  template <typename V>
  static HOLDFAST_INLINE void Take(V& a, const V& b) {
    if constexpr (std::is_floating_point_v<T>) {
      a = (kMax ? b > a : b < a) | (b != b) ? b : a;
    } else {
      a = (kMax ? b > a : b < a) ? b : a;
    }
  }

  // REQUIRES: n >= kCount.
  static HOLDFAST_INLINE T Of(const T* p, int64_t n) {
    constexpr int kVectors = 4;  // that do not wait for each other
    constexpr int64_t kStep = kVectors * kCount;
    Vector first;
    int64_t i = kCount;
    std::memcpy(&first, p, 32);
    if (n >= 2 * kStep) {
      Vector lanes[kVectors];
      std::memcpy(lanes, p, sizeof(lanes));
      for (i = kStep; i + kStep <= n; i += kStep) {
        for (int j = 0; j < kVectors; ++j) TakeAt(p + i + j * kCount, lanes[j]);
      }
      Take(lanes[0], lanes[1]);
      Take(lanes[2], lanes[3]);
      first = lanes[0];
      Take(first, lanes[2]);
    }
    for (; i + kCount <= n; i += kCount) TakeAt(p + i, first);
    // The end, with some that were taken before: they change nothing.
    if (i < n) TakeAt(p + n - kCount, first);
    return Fold(first);
  }

 private:
  static HOLDFAST_INLINE void TakeAt(const T* p, Vector& lanes) {
    Vector v;
    std::memcpy(&v, p, 32);
    Take(lanes, v);
  }

  static HOLDFAST_INLINE T Fold(const Vector& v) {
    Half low, high;
    std::memcpy(&low, &v, 16);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + 16, 16);
    Take(low, high);
    T lanes[16 / sizeof(T)];
    std::memcpy(lanes, &low, 16);
    for (int width = 8 / sizeof(T); width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) Take(lanes[j], lanes[j + width]);
    }
    return lanes[0];
  }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_EXTREME_ROW_H_
