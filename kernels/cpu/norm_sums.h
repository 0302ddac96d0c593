// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sums that normalisations are made of, over runs of adjacent elements.
// A run is added up in blocks, each in many lanes of the element type, and the
// blocks in double: fast, and as exact for a million elements as for ten.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_NORM_SUMS_H_
#define HOLDFAST_KERNELS_CPU_NORM_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/vectorised.h"

namespace holdfast::cpu {

// Two 512-bit registers.
template <typename T>
inline constexpr int kNormLanes = 128 / sizeof(T);
constexpr int64_t kNormBlock = 4096;

// Sum of term(i) over [0, n), `term` an inlined lambda.
template <typename T, typename Term>
HOLDFAST_INLINE double SumOf(int64_t n, Term term) {
  constexpr int kLanes = kNormLanes<T>;
  double total = 0;
  for (int64_t start = 0; start < n; start += kNormBlock) {
    const int64_t end = std::min(n, start + kNormBlock);
    T lanes[kLanes] = {};
    int64_t i = start;
    for (; i + kLanes <= end; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
    }
    for (int j = 0; i < end; ++i, ++j) lanes[j] += term(i);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    }
    total += lanes[0];
  }
  return total;
}

// Sum of x.
template <typename T>
struct SumBody {
  static HOLDFAST_INLINE double Run(const T* x, int64_t n) {
    return SumOf<T>(n, [=](int64_t i) HOLDFAST_INLINE_LAMBDA { return x[i]; });
  }
};

// Sum of (x - mean)^2.
template <typename T>
struct SquaresBody {
  static HOLDFAST_INLINE double Run(const T* x, T mean, int64_t n) {
    return SumOf<T>(n, [=](int64_t i) HOLDFAST_INLINE_LAMBDA {
      const T d = x[i] - mean;
      return d * d;
    });
  }
};

// Sum of g (x - mean).
template <typename T>
struct ProductsBody {
  static HOLDFAST_INLINE double Run(const T* g, const T* x, T mean, int64_t n) {
    return SumOf<T>(n, [=](int64_t i) HOLDFAST_INLINE_LAMBDA {
      return g[i] * (x[i] - mean);
    });
  }
};

// out = (x - mean) scale + shift
template <typename T>
struct ScaleBody {
  static HOLDFAST_INLINE int Run(const T* x, T* out, T mean, T scale, T shift,
                                 int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale + shift;
    return 0;
  }
};

// out = g a + (x - mean) b + k
template <typename T>
struct NormGradBody {
  static HOLDFAST_INLINE int Run(const T* g, const T* x, T* out, T mean, T a,
                                 T b, T k, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = g[i] * a + (x[i] - mean) * b + k;
    }
    return 0;
  }
};

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_NORM_SUMS_H_
