// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Complex<T>: the elements of complex64 and complex128 tensors. Not
// std::complex, whose product looks for NaN first and so does not vectorise.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_OPS_COMPLEX_H_
#define HOLDFAST_OPS_COMPLEX_H_

#include <cmath>

#include "ops/host_device.h"

namespace holdfast {

template <typename T>
struct Complex {
  T real;
  T imag;

  Complex() = default;
  HOLDFAST_HD constexpr Complex(T re, T im = T(0))  // NOLINT: as numbers do
      : real(re), imag(im) {}

  friend HOLDFAST_HD Complex operator+(Complex a, Complex b) {
    return {a.real + b.real, a.imag + b.imag};
  }
  friend HOLDFAST_HD Complex operator-(Complex a, Complex b) {
    return {a.real - b.real, a.imag - b.imag};
  }
  friend HOLDFAST_HD Complex operator-(Complex a) { return {-a.real, -a.imag}; }
  friend HOLDFAST_HD Complex operator*(Complex a, Complex b) {
    return {a.real * b.real - a.imag * b.imag,
            a.real * b.imag + a.imag * b.real};
  }
  // Smith's method (1962): no overflow where the quotient has none.
  friend HOLDFAST_HD Complex operator/(Complex a, Complex b) {
    if (std::fabs(b.real) >= std::fabs(b.imag)) {
      if (b.real == T(0) && b.imag == T(0)) {
        return {a.real / b.real, a.imag / b.real};
      }
      const T ratio = b.imag / b.real;
      const T scale = T(1) / (b.real + b.imag * ratio);
      return {(a.real + a.imag * ratio) * scale,
              (a.imag - a.real * ratio) * scale};
    }
    const T ratio = b.real / b.imag;
    const T scale = T(1) / (b.real * ratio + b.imag);
    return {(a.real * ratio + a.imag) * scale,
            (a.imag * ratio - a.real) * scale};
  }
  friend HOLDFAST_HD bool operator==(Complex a, Complex b) {
    return a.real == b.real && a.imag == b.imag;
  }
  friend HOLDFAST_HD bool operator!=(Complex a, Complex b) { return !(a == b); }
};

// |z| without overflow; its argument in (-pi, pi]; the conjugate.
template <typename T>
HOLDFAST_HD T Magnitude(Complex<T> z) {
  return std::hypot(z.real, z.imag);
}
template <typename T>
HOLDFAST_HD T Argument(Complex<T> z) {
  return std::atan2(z.imag, z.real);
}
template <typename T>
HOLDFAST_HD Complex<T> Conjugate(Complex<T> z) {
  return {z.real, -z.imag};
}

// Principal values.
template <typename T>
HOLDFAST_HD Complex<T> Exp(Complex<T> z) {
  const T scale = std::exp(z.real);
  if (z.imag == T(0)) return {scale, z.imag};
  return {scale * std::cos(z.imag), scale * std::sin(z.imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> Log(Complex<T> z) {
  return {std::log(Magnitude(z)), Argument(z)};
}
template <typename T>
HOLDFAST_HD Complex<T> Sqrt(Complex<T> z) {
  const T size = Magnitude(z);
  if (size == T(0)) return {T(0), z.imag};
  // The half that does not cancel; the other from 2 re(w) im(w) = im(z).
  const T half = std::sqrt((size + std::fabs(z.real)) / T(2));
  const T other = std::fabs(z.imag) / (T(2) * half);
  return {z.real >= T(0) ? half : other,
          std::copysign(z.real >= T(0) ? other : half, z.imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> Sin(Complex<T> z) {
  return {std::sin(z.real) * std::cosh(z.imag),
          std::cos(z.real) * std::sinh(z.imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> Cos(Complex<T> z) {
  return {std::cos(z.real) * std::cosh(z.imag),
          -std::sin(z.real) * std::sinh(z.imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> Tanh(Complex<T> z) {
  // Beyond this tanh is 1 to the last bit, and cosh may overflow.
  if (std::fabs(z.real) > T(20)) return {std::copysign(T(1), z.real), T(0)};
  const T scale = T(1) / (std::cosh(T(2) * z.real) + std::cos(T(2) * z.imag));
  return {std::sinh(T(2) * z.real) * scale, std::sin(T(2) * z.imag) * scale};
}
template <typename T>
HOLDFAST_HD Complex<T> Power(Complex<T> a, Complex<T> b) {
  if (b.real == T(0) && b.imag == T(0)) return T(1);
  if (a.real == T(0) && a.imag == T(0)) return T(0);
  return Exp(b * Log(a));
}

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<Complex<T>> = true;

}  // namespace holdfast

#endif  // HOLDFAST_OPS_COMPLEX_H_
