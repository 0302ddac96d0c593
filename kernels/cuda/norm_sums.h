// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What normalisations add up. A thread takes chunks of some elements, whose
// sums are made in the type of the computation, and adds those up in double:
// few operations per element, and as exact for a million elements as for ten.
// Thread-safety: pure functions, plain values.
#ifndef HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_
#define HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_

#include <cstdint>

#include "kernels/cuda/packs.h"
#include "kernels/cuda/reducers.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

struct AddNumbers {
  HOLDFAST_HD double operator()(double a, double b) const { return a + b; }
};

// Two sums at once.
struct TwoSums {
  double first, second;
};
struct AddSums {
  HOLDFAST_HD TwoSums operator()(TwoSums a, TwoSums b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// 1 where there are no weights.
template <typename T, typename S>
HOLDFAST_HD T ConvertedFactor(const S* weight, int64_t c) {
  return weight == nullptr ? T(1) : Convert<T>(weight[c]);
}

// The moments of what a thread sees. Differences from its first element are
// exact where the mean is much larger than the deviation; within a chunk they
// are taken from the chunk's own mean, so that an outlier at the start does no
// harm to the others.
template <typename T>
struct RunningMoments {
  T shift = 0;
  double sum = 0, squares = 0;  // of the chunks' means, by elements
  double within = 0;            // squared differences from the chunks' means
  int64_t count = 0;

  // The first `valid` of kSize elements. REQUIRES: valid > 0.
  template <int kSize>
  HOLDFAST_HD void Add(const T (&x)[kSize], int valid) {
    if (count == 0) shift = x[0];
    T chunk = 0;
    HOLDFAST_UNROLL
    for (int i = 0; i < kSize; ++i) chunk += i < valid ? x[i] - shift : T(0);
    const T mean = chunk / static_cast<T>(valid);
    T rest = 0;
    HOLDFAST_UNROLL
    for (int i = 0; i < kSize; ++i) {
      const T d = i < valid ? (x[i] - shift) - mean : T(0);
      rest += d * d;
    }
    const double total = chunk;
    sum += total;
    squares += total * (total / valid);
    within += rest;
    count += valid;
  }

  HOLDFAST_HD Moments Result() const {
    if (count == 0) return {0, 0, 0};
    const double n = static_cast<double>(count);
    // What is subtracted is never more, but for rounding.
    const double between = squares - sum * (sum / n);
    return {n, shift + sum / n, within + (between > 0 ? between : 0)};
  }
};

// The sums of two sequences.
template <typename T>
struct RunningSums {
  double first = 0, second = 0;

  template <int kSize>
  HOLDFAST_HD void Add(const T (&a)[kSize], const T (&b)[kSize], int valid) {
    T of_a = 0, of_b = 0;
    HOLDFAST_UNROLL
    for (int i = 0; i < kSize; ++i) {
      of_a += i < valid ? a[i] : T(0);
      of_b += i < valid ? b[i] : T(0);
    }
    first += of_a;
    second += of_b;
  }
  HOLDFAST_HD TwoSums Result() const { return {first, second}; }
};

// Bodies of SumChannels (plane_sums.h): the moments of a channel, and what
// those have in common that add up two products.
template <typename S>
struct MomentsOfChannel {
  using Stored = S;
  using Compute = ComputeOf<S>;
  using State = RunningMoments<Compute>;
  using Acc = Moments;
  static constexpr int kInputs = 1;

  const S* inputs[1];

  HOLDFAST_HD State Start(int64_t) const { return {}; }
  HOLDFAST_HD void Adjust(const State&, int64_t, int64_t,
                          Compute (&)[1]) const {}
  template <int kSize>
  HOLDFAST_HD void Add(State* state, const Compute (&v)[1][kSize],
                       int valid) const {
    state->Add(v[0], valid);
  }
  HOLDFAST_HD Acc Result(const State& state) const { return state.Result(); }
  static HOLDFAST_HD Acc Init() { return {0, 0, 0}; }
  // As MomentsOf does, with one division.
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const double n = a.count + b.count, d = b.mean - a.mean;
    const double part = b.count / n;
    return {n, a.mean + d * part,
            a.squares + b.squares + d * d * (a.count * part)};
  }
};

template <typename S>
struct SumsOfTwo {
  using Stored = S;
  using Compute = ComputeOf<S>;
  using Acc = TwoSums;
  static constexpr int kInputs = 2;

  const S* inputs[2];

  template <typename State, int kSize>
  HOLDFAST_HD void Add(State* state, const Compute (&v)[2][kSize],
                       int valid) const {
    state->sums.Add(v[0], v[1], valid);
  }
  template <typename State>
  HOLDFAST_HD Acc Result(const State& state) const {
    return state.sums.Result();
  }
  static HOLDFAST_HD Acc Init() { return {0, 0}; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) { return AddSums()(a, b); }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_
