// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels that work on rows of a softmax have in common; for bodies of
// Vectorised (vectorised.h). Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_SOFTMAX_ROW_H_
#define HOLDFAST_KERNELS_CPU_SOFTMAX_ROW_H_

#include <cstdint>
#include <limits>

#include "kernels/cpu/vectorised.h"
#include "kernels/fast_exp.h"

namespace holdfast::cpu {

// Two 512-bit registers: loops over one are unrolled before they could be
// vectorised.
template <typename T>
inline constexpr int kSoftmaxLanes = 128 / sizeof(T);

// Passes over NaN, which reaches the results through the sum.
template <typename T>
HOLDFAST_INLINE T Larger(T a, T b) {
  return b > a ? b : a;
}

template <typename T, typename Combine>
HOLDFAST_INLINE T Fold(T* lanes, Combine combine) {
  for (int width = kSoftmaxLanes<T> / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) {
      lanes[j] = combine(lanes[j], lanes[j + width]);
    }
  }
  return lanes[0];
}

// Calls block(in) for every kSoftmaxLanes elements; the rest comes in a buffer
// filled up with `pad`.
template <typename T, typename Block>
HOLDFAST_INLINE void ReadBlocks(const T* in, int64_t n, T pad, Block block) {
  constexpr int kLanes = kSoftmaxLanes<T>;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) block(in + i);
  if (i < n) {
    T rest[kLanes];
    for (int j = 0; j < kLanes; ++j) rest[j] = pad;
    for (int64_t j = 0; i + j < n; ++j) rest[j] = in[i + j];
    block(rest);
  }
}

// The largest of n elements, NaN passed over; -infinity for none.
template <typename T>
HOLDFAST_INLINE T RowMax(const T* in, int64_t n) {
  constexpr int kLanes = kSoftmaxLanes<T>;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  T lanes[kLanes];
  for (int j = 0; j < kLanes; ++j) lanes[j] = kLowest;
  ReadBlocks(in, n, kLowest, [&](const T* p) HOLDFAST_INLINE_LAMBDA {
    for (int j = 0; j < kLanes; ++j) lanes[j] = Larger(lanes[j], p[j]);
  });
  return Fold(lanes,
              [](T a, T b) HOLDFAST_INLINE_LAMBDA { return Larger(a, b); });
}

// out[i] = exp(in[i] - max), and the sum of that. `out` may be `in`.
template <typename T>
HOLDFAST_INLINE T ExpRow(const T* in, int64_t n, T max, T* out) {
  constexpr int kLanes = kSoftmaxLanes<T>;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const T e = FastExp(in[i + j] - max);
      out[i + j] = e;
      lanes[j] += e;
    }
  }
  if (i < n) {
    T rest[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      rest[j] = -std::numeric_limits<T>::infinity();
    }
    for (int64_t j = 0; i + j < n; ++j) rest[j] = in[i + j];
    for (int j = 0; j < kLanes; ++j) {
      rest[j] = FastExp(rest[j] - max);
      lanes[j] += rest[j];
    }
    for (int64_t j = 0; i + j < n; ++j) out[i + j] = rest[j];
  }
  return Fold(lanes, [](T a, T b) HOLDFAST_INLINE_LAMBDA { return a + b; });
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_SOFTMAX_ROW_H_
