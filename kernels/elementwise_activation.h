// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The activations as scalar functions, shared by every device, as
// kernels/elementwise.h has the other elementwise ops: a row makes functors
// activation::<name> (forward) and activation::<name>_grad (times its
// derivative). Each expression is free of branches around calls, so that loops
// over it vectorise, and lets NaN through.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_ELEMENTWISE_ACTIVATION_H_
#define HOLDFAST_KERNELS_ELEMENTWISE_ACTIVATION_H_

#include <cmath>
#include <type_traits>

#include "kernels/elementwise.h"

// clang-format off

// X(op, value, derivative): both see the input `x` and the op's numbers `a`,
// `b`, `c`, all of type T; the derivative is multiplied by the gradient.
#define HOLDFAST_ACTIVATIONS(X)                                               \
  X(gelu, x * Normal(x), Normal(x) + x * NormalDensity(x))                    \
  X(gelu_tanh, x * Logistic(TanhArgument(x)),                                 \
    SwishSlope(Logistic(TanhArgument(x)), x * TanhSlope(x)))                  \
  X(silu, x * Logistic(x), SwishSlope(Logistic(x), x))                        \
  X(mish, x * TanhSoftplus(std::exp(Below(x, T(20)))),                        \
    MishSlope(x, std::exp(Below(x, T(20)))))                                  \
  X(softplus, Softplus(x * a, b) / a, Logistic(x * a > b ? T(1e4) : x * a))   \
  X(leaky_relu, x > T(0) ? x : x * a, x > T(0) ? T(1) : a)                    \
  X(elu, b * (Above(x, T(0)) + a * std::expm1(c * Below(x, T(0)))),           \
    (x > T(0) ? b : a * b * c) * std::exp(c * Below(x, T(0))))                \
  X(hardswish, x * Ramp(x),                                                   \
    x < T(-3) ? T(0) : x > T(3) ? T(1) : x / T(3) + T(0.5))                   \
  X(hardsigmoid, Ramp(x), (x > T(-3)) & (x < T(3)) ? T(1) / T(6) : T(0))      \
  X(hardtanh, Below(Above(x, a), b), (x <= a) | (x >= b) ? T(0) : T(1))       \
  X(hardshrink, (x >= -a) & (x <= a) ? T(0) : x,                              \
    (x >= -a) & (x <= a) ? T(0) : T(1))                                       \
  X(softshrink, x > a ? x - a : x < -a ? x + a : x * T(0),                    \
    (x >= -a) & (x <= a) ? T(0) : T(1))                                       \
  X(threshold, x <= a ? b : x, x <= a ? T(0) : T(1))                          \
  X(softsign, x / (T(1) + std::fabs(x)),                                      \
    T(1) / ((T(1) + std::fabs(x)) * (T(1) + std::fabs(x))))                   \
  X(huber, Limited(x, a) * (x - T(0.5) * Limited(x, a)), Limited(x, a))

// X(op, derivative): the same for functions whose values are rows of
// kernels/elementwise.h. Of tanh and sigmoid `x` is the output.
#define HOLDFAST_SLOPES(X)                                                    \
  X(tanh, T(1) - x * x)                                                       \
  X(sigmoid, x * (T(1) - x))                                                  \
  X(abs, elementwise::Sign(x))                                                \
  X(square, x + x)

// clang-format on

namespace holdfast {
namespace activation {

// max and min that keep x's NaN.
template <typename T>
HOLDFAST_HD T Above(T x, T low) {
  return x < low ? low : x;
}
template <typename T>
HOLDFAST_HD T Below(T x, T high) {
  return x > high ? high : x;
}

// To [-limit, limit].
template <typename T>
HOLDFAST_HD T Limited(T x, T limit) {
  return Below(Above(x, -limit), limit);
}

template <typename T>
HOLDFAST_HD T Logistic(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// The normal distribution function in float32: 1/2 + x R(x^2), R a quotient of
// polynomials fitted to it for |x| < 5.5, where its relative error is below
// 2e-8; beyond that the function is 0 or 1 but for 2e-8. Absolute error 2.2e-7.
// Half the time of the C library's vector erf.
HOLDFAST_HD float NormalOfFloat(float x) {
  constexpr float kEnd = 5.5f;
  const float z = Limited(x, kEnd);
  const float s = z * z;
  float p = 2.2931201826281722e-08f;
  p = p * s + 6.301536359387683e-06f;
  p = p * s + 0.00016457027231808752f;
  p = p * s + 0.0046514603309333324f;
  p = p * s + 0.03345858305692673f;
  p = p * s + 0.3989422619342804f;
  float q = 1.199025746245752e-06f;
  q = q * s + 7.216576341306791e-05f;
  q = q * s + 0.0018606262747198343f;
  q = q * s + 0.028415946289896965f;
  q = q * s + 0.25053462386131287f;
  q = q * s + 1.0f;
  const float inside = Below(Above(0.5f + z * (p / q), 0.0f), 1.0f);
  return x > kEnd ? 1.0f : x < -kEnd ? 0.0f : inside;
}

// Distribution function and density of the normal distribution.
template <typename T>
HOLDFAST_HD T Normal(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return NormalOfFloat(x);
  } else {
    return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
  }
}
template <typename T>
HOLDFAST_HD T NormalDensity(T x) {
  return T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
}

// gelu's approximation: (1 + tanh(u)) / 2 = logistic(2u), with
// u = sqrt(2/pi) (x + 0.044715 x^3). This is 2u, and its derivative.
template <typename T>
HOLDFAST_HD T TanhArgument(T x) {
  return T(1.59576912160573071176) * (x + T(0.044715) * x * x * x);
}
template <typename T>
HOLDFAST_HD T TanhSlope(T x) {
  return T(1.59576912160573071176) * (T(1) + T(0.134145) * x * x);
}

// Derivative of x s(v(x)), s logistic, from s and x v'(x).
template <typename T>
HOLDFAST_HD T SwishSlope(T s, T xv) {
  return s * (T(1) + xv * (T(1) - s));
}

// tanh(log(1 + e)), and mish's derivative, where e = exp(x).
template <typename T>
HOLDFAST_HD T TanhSoftplus(T e) {
  const T n = e * (e + T(2));
  return n / (n + T(2));
}
template <typename T>
HOLDFAST_HD T MishSlope(T x, T e) {
  const T n = e * (e + T(2));
  const T d = n + T(2);
  return n / d + x * (T(4) * e * (T(1) + e) / (d * d));
}

// log(1 + exp(z)), z itself above the threshold.
template <typename T>
HOLDFAST_HD T Softplus(T z, T threshold) {
  const T tail = std::log1p(std::exp(-std::fabs(z)));
  return (z > threshold ? z : Above(z, T(0))) +
         (z > threshold ? T(0) : T(1)) * tail;
}

template <typename T>
HOLDFAST_HD T Ramp(T x) {
  return Below(Above(x + T(3), T(0)), T(6)) / T(6);
}

#define HOLDFAST_DEFINE_ACTIVATION(name, value, derivative)                  \
  struct name {                                                              \
    static constexpr bool kGrad = false;                                     \
    template <typename T>                                                    \
    static HOLDFAST_HD T Apply(T, T x, [[maybe_unused]] T a,                 \
                               [[maybe_unused]] T b, [[maybe_unused]] T c) { \
      return value;                                                          \
    }                                                                        \
  };                                                                         \
  HOLDFAST_DEFINE_SLOPE(name, derivative)
#define HOLDFAST_DEFINE_SLOPE(name, derivative)                              \
  struct name##_grad {                                                       \
    static constexpr bool kGrad = true;                                      \
    template <typename T>                                                    \
    static HOLDFAST_HD T Apply(T grad, T x, [[maybe_unused]] T a,            \
                               [[maybe_unused]] T b, [[maybe_unused]] T c) { \
      return grad * (derivative);                                            \
    }                                                                        \
  };
HOLDFAST_ACTIVATIONS(HOLDFAST_DEFINE_ACTIVATION)
HOLDFAST_SLOPES(HOLDFAST_DEFINE_SLOPE)
#undef HOLDFAST_DEFINE_ACTIVATION
#undef HOLDFAST_DEFINE_SLOPE

}  // namespace activation
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_ELEMENTWISE_ACTIVATION_H_
