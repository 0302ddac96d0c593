// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What reductions combine: One makes an Acc of an element, Combine puts two
// together, Init changes nothing. Sums of floats are kept in double.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_REDUCERS_H_
#define HOLDFAST_KERNELS_CUDA_REDUCERS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/element_convert.h"
#include "ops/complex.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

// One of elements stored as S, as the number it is computed as.
template <typename S>
HOLDFAST_HD ComputeOf<S> Computed(S v) {
  return Convert<ComputeOf<S>>(v);
}

// double for real floats, int64 (which wraps) for integers and bool.
template <typename S>
using SumType = std::conditional_t<std::is_integral_v<S>, int64_t, double>;

template <typename S>
struct SumOf {
  using Acc = SumType<S>;
  static HOLDFAST_HD Acc Init() { return 0; }
  static HOLDFAST_HD Acc One(S v) { return static_cast<Acc>(Computed(v)); }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return elementwise::Add(a, b);
  }
};

template <typename T>
struct SumOf<Complex<T>> {
  using Acc = Complex<double>;
  static HOLDFAST_HD Acc Init() { return {0, 0}; }
  static HOLDFAST_HD Acc One(Complex<T> v) {
    return {static_cast<double>(v.real), static_cast<double>(v.imag)};
  }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) { return a + b; }
};

// NaN counts as 0.
template <typename S>
struct NanSumOf : SumOf<S> {
  static HOLDFAST_HD double One(S v) {
    const double x = Computed(v);
    return x != x ? 0.0 : x;
  }
};

template <typename S>
struct SquareSumOf : SumOf<S> {
  static HOLDFAST_HD double One(S v) {
    const double x = Computed(v);
    return x * x;
  }
};

template <typename S>
struct AbsoluteSumOf : SumOf<S> {
  static HOLDFAST_HD double One(S v) { return std::fabs(double(Computed(v))); }
};

template <typename S>
struct NonzeroCountOf {
  using Acc = int64_t;
  static HOLDFAST_HD Acc Init() { return 0; }
  static HOLDFAST_HD Acc One(S v) { return Convert<bool>(Computed(v)) ? 1 : 0; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) { return a + b; }
};

template <typename S>
struct ProductOf {
  using Acc = SumType<S>;
  static HOLDFAST_HD Acc Init() { return 1; }
  static HOLDFAST_HD Acc One(S v) { return static_cast<Acc>(Computed(v)); }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return elementwise::Multiply(a, b);
  }
};

// A word or more, which is what groups exchange.
template <typename T>
using Exchanged = std::conditional_t<sizeof(T) < 4, int32_t, T>;

// NaN wins.
template <typename S, bool kMax>
struct ExtremeOf {
  using Acc = Exchanged<ComputeOf<S>>;
  static HOLDFAST_HD Acc Init() {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (std::is_floating_point_v<Acc>) {
      return kMax ? -Limits::infinity() : Limits::infinity();
    } else {
      return kMax ? Limits::lowest() : Limits::max();
    }
  }
  static HOLDFAST_HD Acc One(S v) { return static_cast<Acc>(Computed(v)); }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    if (a != a) return a;
    return (kMax ? b > a : b < a) || b != b ? b : a;
  }
};

template <typename S, bool kMax>
struct ExtremeMagnitudeOf : ExtremeOf<S, kMax> {
  using Acc = typename ExtremeOf<S, kMax>::Acc;
  static HOLDFAST_HD Acc Init() {
    return kMax ? Acc(0) : ExtremeOf<S, kMax>::Init();
  }
  static HOLDFAST_HD Acc One(S v) { return std::fabs(Computed(v)); }
};

template <typename S, bool kAll>
struct TruthOf {
  using Acc = int32_t;
  static HOLDFAST_HD Acc Init() { return kAll ? 1 : 0; }
  static HOLDFAST_HD Acc One(S v) { return Convert<bool>(Computed(v)) ? 1 : 0; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) { return kAll ? a & b : a | b; }
};

// The first place of the extreme; the first NaN is extreme.
template <typename T>
struct Place {
  T value;
  int64_t index;  // -1: nothing yet
};

template <typename S, bool kMax>
struct PlaceOf {
  using Value = Exchanged<ComputeOf<S>>;
  using Acc = Place<Value>;
  static HOLDFAST_HD Acc Init() { return {Value(0), -1}; }
  static HOLDFAST_HD bool Beats(Value b, Value a) {
    if (a != a) return false;
    return (kMax ? b > a : b < a) || b != b;
  }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    if (Beats(b.value, a.value)) return b;
    if (Beats(a.value, b.value)) return a;
    return a.index <= b.index ? a : b;
  }
};

// Mean and sum of squared differences from it (Chan, Golub & LeVeque 1983).
struct Moments {
  double count, mean, squares;
};

template <typename S>
struct MomentsOf {
  using Acc = Moments;
  static HOLDFAST_HD Acc Init() { return {0, 0, 0}; }
  static HOLDFAST_HD Acc One(S v) {
    const double x = Computed(v);
    return {1, x, x - x};  // NaN of what is not finite
  }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const double n = a.count + b.count, d = b.mean - a.mean;
    return {n, a.mean + d * (b.count / n),
            a.squares + b.squares + d * d * (a.count * b.count / n)};
  }
};

// The Acc of some elements together.
template <typename R>
struct TogetherOf {
  template <typename S, int kSize>
  static HOLDFAST_HD typename R::Acc Of(const S (&elements)[kSize]) {
    typename R::Acc acc = R::One(elements[0]);
    for (int i = 1; i < kSize; ++i) acc = R::Combine(acc, R::One(elements[i]));
    return acc;
  }
};

// Combine divides: once for all of them.
template <typename S>
struct TogetherOf<MomentsOf<S>> {
  template <int kSize>
  static HOLDFAST_HD Moments Of(const S (&elements)[kSize]) {
    double sum = 0, squares = 0;
    for (const S& v : elements) sum += static_cast<double>(Computed(v));
    const double mean = sum * (1.0 / kSize);
    for (const S& v : elements) {
      const double d = static_cast<double>(Computed(v)) - mean;
      squares += d * d;
    }
    return {kSize, mean, squares};
  }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_REDUCERS_H_
