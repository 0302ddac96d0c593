// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of softmax: where they lie, who takes them, and their sums of
// exponentials, which one pass makes together with the largest element.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_SOFTMAX_ROWS_H_
#define HOLDFAST_KERNELS_CUDA_SOFTMAX_ROWS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/combine.h"
#include "kernels/cuda/held_row.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/packs.h"

namespace holdfast::cuda {

// Rows of n elements in a contiguous [outer, n, inner].
class SoftmaxRows {
 public:
  SoftmaxRows(int64_t outer, int64_t n, int64_t inner)
      : n_(n), inner_(inner), rows_(outer * inner), by_inner_(inner) {}

  int64_t rows() const { return rows_; }
  HOLDFAST_HD int64_t n() const { return n_; }
  // From an element of a row to the next.
  HOLDFAST_HD int64_t apart() const { return inner_; }
  // A row's first element.
  HOLDFAST_HD int64_t Start(int64_t row) const {
    if (inner_ == 1) return row * n_;
    const auto at = by_inner_.Split(row);
    return at.quotient * n_ * inner_ + at.rest;
  }

  // Whether a row is of full packs. It decides the order of sums, so it must
  // not depend on where memory begins.
  template <typename S>
  bool packed() const {
    return inner_ == 1 && n_ % kPackWidth<S> == 0;
  }
  // Threads of a row that is kept in registers; 0: it is too long. Where
  // neighbouring rows are neighbours in memory a thread each reads best.
  template <typename T>
  int held_group() const {
    if (inner_ < kWarp) return HeldGroup<T>(n_);
    return n_ <= kHeld<T> ? 1 : 0;
  }
  // Threads of a row that is not.
  int walking_group() const { return inner_ < kWarp ? kBlockThreads : 1; }

 private:
  int64_t n_, inner_, rows_;
  Division<int64_t> by_inner_;
};

// run(elements of a thread, as a constant) for rows of n that `group` threads
// hold: registers that nothing is kept in cost instructions all the same.
template <typename T, typename Run>
absl::Status DispatchHeld(int64_t n, int group, Run run) {
  constexpr int kFew = kHeld<T> / 4;
  if (n <= int64_t{1} * group * kFew) {
    return run(std::integral_constant<int, kHoldingThreads * kFew>());
  }
  return run(std::integral_constant<int, kHoldingThreads * kHeld<T>>());
}

// The largest of some elements, and the sum of exp(element - largest).
template <typename T>
struct ExpSum {
  T largest = -std::numeric_limits<T>::infinity();
  T sum = 0;

  // What exponents are taken from: -inf - -inf would be NaN.
  static HOLDFAST_HD T Base(T largest) {
    return largest == -std::numeric_limits<T>::infinity() ? T(0) : largest;
  }
  template <int kCount>
  HOLDFAST_HD void Take(const T (&elements)[kCount]) {
    T most = largest;
    HOLDFAST_UNROLL
    for (int i = 0; i < kCount; ++i) most = LargerOf()(most, elements[i]);
    const T base = Base(most);
    T together = sum * std::exp(largest - base);
    HOLDFAST_UNROLL
    for (int i = 0; i < kCount; ++i) together += std::exp(elements[i] - base);
    *this = {most, together};
  }
};

struct CombineExpSums {
  template <typename T>
  HOLDFAST_HD ExpSum<T> operator()(ExpSum<T> a, ExpSum<T> b) const {
    const T largest = LargerOf()(a.largest, b.largest);
    const T base = ExpSum<T>::Base(largest);
    return {largest, a.sum * std::exp(a.largest - base) +
                         b.sum * std::exp(b.largest - base)};
  }
};

// A long row, several packs of which are on their way at once.
template <typename S, int kWidth>
struct WalkedRow {
  using T = ComputeOf<S>;
  static constexpr int kTogether = kWidth == 1 ? 8 : 4;

  int64_t packs, step;  // elements from a pack to the next

  explicit WalkedRow(const SoftmaxRows& rows)
      : packs(rows.n() / kWidth), step(kWidth * rows.apart()) {}

  // take(elements[kTensors][some]) for a thread's part of the rows that begin
  // at the pointers.
  template <int kTensors, typename Take>
  HOLDFAST_HD void ForEach(const Group& group, const S* const (&rows)[kTensors],
                           Take take) const {
    int64_t j = group.rank;
    for (; j + (kTogether - 1) * group.size < packs;
         j += kTogether * group.size) {
      T v[kTensors][kTogether * kWidth];
      HOLDFAST_UNROLL
      for (int k = 0; k < kTogether; ++k) {
        HOLDFAST_UNROLL
        for (int t = 0; t < kTensors; ++t) {
          LoadPack<kWidth>(rows[t] + (j + k * group.size) * step,
                           v[t] + k * kWidth);
        }
      }
      take(v);
    }
    for (; j < packs; j += group.size) {
      T v[kTensors][kWidth];
      HOLDFAST_UNROLL
      for (int t = 0; t < kTensors; ++t) {
        LoadPack<kWidth>(rows[t] + j * step, v[t]);
      }
      take(v);
    }
  }
  // out = what change(&elements) makes of v[0], pack by pack.
  template <int kTensors, typename Change>
  HOLDFAST_HD void Map(const Group& group, const S* const (&rows)[kTensors],
                       S* out, Change change) const {
    constexpr int kSome = kTensors == 1 ? 4 : 2;
    for (int64_t j = group.rank; j < packs; j += kSome * group.size) {
      T v[kSome][kTensors][kWidth];
      HOLDFAST_UNROLL
      for (int k = 0; k < kSome; ++k) {
        if (j + k * group.size >= packs) break;
        HOLDFAST_UNROLL
        for (int t = 0; t < kTensors; ++t) {
          LoadPack<kWidth>(rows[t] + (j + k * group.size) * step, v[k][t]);
        }
      }
      HOLDFAST_UNROLL
      for (int k = 0; k < kSome; ++k) {
        if (j + k * group.size >= packs) break;
        change(v[k]);
        StorePack<kWidth>(out + (j + k * group.size) * step, v[k][0]);
      }
    }
  }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_SOFTMAX_ROWS_H_
