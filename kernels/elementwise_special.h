// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Trigonometric, hyperbolic, exponential and special functions, shared by every
// device as kernels/elementwise.h has the other elementwise ops: a row makes
// the functor elementwise::special::<name>. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_ELEMENTWISE_SPECIAL_H_
#define HOLDFAST_KERNELS_ELEMENTWISE_SPECIAL_H_

#include <cmath>

#include "kernels/elementwise.h"

// clang-format off

// X(op, types, expression): as in HOLDFAST_UNARY_OPS.
#define HOLDFAST_SPECIAL_UNARY_OPS(X)       \
  X(tan, WithComplex<MathTypes>, Tan(a))    \
  X(asin, WithComplex<MathTypes>, Asin(a))  \
  X(acos, WithComplex<MathTypes>, Acos(a))  \
  X(atan, WithComplex<MathTypes>, Atan(a))  \
  X(sinh, WithComplex<MathTypes>, Sinh(a))  \
  X(cosh, WithComplex<MathTypes>, Cosh(a))  \
  X(asinh, WithComplex<MathTypes>, Asinh(a))\
  X(acosh, WithComplex<MathTypes>, Acosh(a))\
  X(atanh, WithComplex<MathTypes>, Atanh(a))\
  X(exp2, MathTypes, std::exp2(a))          \
  X(log10, MathTypes, std::log10(a))        \
  X(erfc, MathTypes, std::erfc(a))          \
  X(erfinv, MathTypes, InverseErf(a))       \
  X(lgamma, MathTypes, LogGamma(a))         \
  X(digamma, MathTypes, Digamma(a))         \
  X(trunc, NumericTypes, Truncate(a))

// As in HOLDFAST_BINARY_OPS.
#define HOLDFAST_SPECIAL_BINARY_OPS(X)                                      \
  X(atan2, MathTypes, std::atan2(a, b))                                    \
  X(hypot, MathTypes, std::hypot(a, b))                                    \
  X(copysign, FloatTypes, std::copysign(a, b))                              \
  X(nextafter, FloatTypes, std::nextafter(a, b))                            \
  X(zeta, FloatTypes, HurwitzZeta(a, b))                                    \
  X(fmod, NumericTypes, TruncatedRemainder(a, b))                           \
  X(fmax, AllTypes, (a >= b || b != b) ? a : b)                             \
  X(fmin, AllTypes, (a <= b || b != b) ? a : b)                             \
  X(gcd, WholeTypes, GreatestCommonDivisor(a, b))                           \
  X(lcm, WholeTypes, LeastCommonMultiple(a, b))                             \
  X(bitwise_left_shift, WholeTypes, ShiftLeft(a, b))                        \
  X(bitwise_right_shift, WholeTypes, ShiftRight(a, b))

// clang-format on

namespace holdfast {
namespace elementwise {

// The complex functions: principal values, by W. Kahan's formulas (Branch Cuts
// for Complex Elementary Functions, 1987), which lose no digits near the cuts.
template <typename T>
HOLDFAST_HD Complex<T> SinhOf(Complex<T> z) {
  if (z.imag == T(0)) return {std::sinh(z.real), z.imag};
  return {std::sinh(z.real) * std::cos(z.imag),
          std::cosh(z.real) * std::sin(z.imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> CoshOf(Complex<T> z) {
  if (z.imag == T(0)) return {std::cosh(z.real), z.imag * T(0)};
  return {std::cosh(z.real) * std::cos(z.imag),
          std::sinh(z.real) * std::sin(z.imag)};
}
// f(i z) / i for an odd f.
template <typename T>
HOLDFAST_HD Complex<T> TimesI(Complex<T> z) {
  return {-z.imag, z.real};
}
template <typename T>
HOLDFAST_HD Complex<T> OverI(Complex<T> z) {
  return {z.imag, -z.real};
}
template <typename T>
HOLDFAST_HD Complex<T> TanOf(Complex<T> z) {
  // Beyond this the imaginary part is 1 to the last bit, and sinh may overflow.
  if (std::fabs(z.imag) > T(20)) return {T(0), std::copysign(T(1), z.imag)};
  const T t = std::tan(z.real), slope = T(1) + t * t;
  const T s = std::sinh(z.imag);
  const T scale = T(1) / (T(1) + slope * s * s);
  return {t * scale, slope * std::sqrt(T(1) + s * s) * s * scale};
}
template <typename T>
HOLDFAST_HD Complex<T> AsinOf(Complex<T> z) {
  const Complex<T> below = ::holdfast::Sqrt(Complex<T>(T(1) - z.real, -z.imag));
  const Complex<T> above = ::holdfast::Sqrt(Complex<T>(T(1) + z.real, z.imag));
  return {std::atan2(z.real, (below * above).real),
          std::asinh((Conjugate(below) * above).imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> AcosOf(Complex<T> z) {
  const Complex<T> below = ::holdfast::Sqrt(Complex<T>(T(1) - z.real, -z.imag));
  const Complex<T> above = ::holdfast::Sqrt(Complex<T>(T(1) + z.real, z.imag));
  return {T(2) * std::atan2(below.real, above.real),
          std::asinh((Conjugate(above) * below).imag)};
}
template <typename T>
HOLDFAST_HD Complex<T> AcoshOf(Complex<T> z) {
  const Complex<T> below = ::holdfast::Sqrt(Complex<T>(z.real - T(1), z.imag));
  const Complex<T> above = ::holdfast::Sqrt(Complex<T>(z.real + T(1), z.imag));
  return {std::asinh((Conjugate(below) * above).real),
          T(2) * std::atan2(below.imag, above.real)};
}
template <typename T>
HOLDFAST_HD Complex<T> AsinhOf(Complex<T> z) {
  return OverI(AsinOf(TimesI(z)));
}
template <typename T>
HOLDFAST_HD Complex<T> AtanhOf(Complex<T> z) {
  const T x = z.real, y = z.imag;
  // Of squares that overflow, 1 / z is what is left.
  const T size = Magnitude(z);
  if (size > T(1e8)) {
    return {(T(1) / z).real, std::copysign(std::atan2(T(1), T(0)), y)};
  }
  const T other = T(1) - std::fabs(x);
  return {
      std::copysign(
          std::log1p(T(4) * std::fabs(x) / (other * other + y * y)) / T(4), x),
      std::atan2(T(2) * y, (T(1) - x) * (T(1) + x) - y * y) / T(2)};
}
template <typename T>
HOLDFAST_HD Complex<T> AtanOf(Complex<T> z) {
  return OverI(AtanhOf(TimesI(z)));
}

#define HOLDFAST_REAL_AND_COMPLEX(Name, name) \
  template <typename T>                       \
  HOLDFAST_HD T Name(T a) {                   \
    if constexpr (kIsComplex<T>) {            \
      return Name##Of(a);                     \
    } else {                                  \
      return std::name(a);                    \
    }                                         \
  }
HOLDFAST_REAL_AND_COMPLEX(Tan, tan)
HOLDFAST_REAL_AND_COMPLEX(Asin, asin)
HOLDFAST_REAL_AND_COMPLEX(Acos, acos)
HOLDFAST_REAL_AND_COMPLEX(Atan, atan)
HOLDFAST_REAL_AND_COMPLEX(Sinh, sinh)
HOLDFAST_REAL_AND_COMPLEX(Cosh, cosh)
HOLDFAST_REAL_AND_COMPLEX(Asinh, asinh)
HOLDFAST_REAL_AND_COMPLEX(Acosh, acosh)
HOLDFAST_REAL_AND_COMPLEX(Atanh, atanh)
#undef HOLDFAST_REAL_AND_COMPLEX

struct WholeTypes : AllTypes {
  template <typename T>
  static constexpr bool kHas =
      std::is_integral_v<T> && !std::is_same_v<T, bool>;
};

template <typename T>
HOLDFAST_HD T Truncate(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::trunc(a);
  } else {
    return a;
  }
}

// For float32, in double and without branches, so that loops vectorise:
// Stirling's series (Abramowitz & Stegun 6.1.41) from 8 on, which smaller
// numbers reach by Gamma(z + 1) = z Gamma(z) (6.1.15), negative ones after
// reflection (6.1.17). Between -8 and 8 the error is about 1e-14, which the
// zeros at 1 and 2 magnify to an ulp or two of the floats next to them.
HOLDFAST_HD float LogGammaOfFloat(float value) {
  constexpr double kPi = 3.14159265358979323846;
  const double x = value, z = std::fabs(x);
  const double y = z < 8 ? z + 8 : z;
  // z (z + 1) ... (z + 7), its factors in pairs from both ends.
  const double u = z * (z + 7);
  const double rising = z < 8 ? u * (u + 6) * (u + 10) * (u + 12) : 1.0;
  const double w = 1 / y, w2 = w * w;
  const double series =
      w * (1.0 / 12 -
           w2 * (1.0 / 360 -
                 w2 * (1.0 / 1260 -
                       w2 * (1.0 / 1680 -
                             w2 * (1.0 / 1188 - w2 * (691.0 / 360360 -
                                                      w2 * (1.0 / 156)))))));
  const double stirling =
      (y - 0.5) * std::log(y) - y + 0.91893853320467274178 + series;
  const double sine = std::fabs(std::sin(kPi * (z - std::rint(z))));
  const double factor = x < 0 ? rising * kPi / (z * sine) : rising;
  const double logarithm = std::log(factor);
  const double result = x < 0 ? logarithm - stirling : stirling - logarithm;
  const bool zero = (x == 1) | (x == 2);
  return static_cast<float>(
      z > std::numeric_limits<float>::max() ? z : (zero ? 0.0 : result));
}

// std::lgamma writes a global; this form does not.
template <typename T>
HOLDFAST_HD T LogGamma(T a) {
  if constexpr (std::is_same_v<T, float>) {
    return LogGammaOfFloat(a);
  } else {
#if defined(__CUDACC__)
    return ::lgamma(a);
#else
    int sign;
    return ::lgamma_r(a, &sign);
#endif
  }
}

// Recurrence up to x >= 10, then the asymptotic series; negative numbers by
// reflection (Abramowitz & Stegun 6.3.5, 6.3.7, 6.3.18). In double.
template <typename T>
HOLDFAST_HD T Digamma(T value) {
  constexpr double kPi = 3.14159265358979323846;
  double x = static_cast<double>(value), shift = 0;
  if (x == 0) return static_cast<T>(std::copysign(INFINITY, -x));
  if (x < 0) {
    const double whole = std::floor(x);
    if (x == whole) return static_cast<T>(NAN);
    shift = -kPi / std::tan(kPi * (x - whole));
    x = 1 - x;
  }
  while (x < 10) {
    shift -= 1 / x;
    x += 1;
  }
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (5.0 / 660 - z * 691.0 / 32760)))));
  return static_cast<T>(shift + std::log(x) - 0.5 / x - series);
}

// Sum over k >= 0 of (q + k)^-s, by Euler and Maclaurin (Johansson 2015,
// "Rigorous high-precision computation of the Hurwitz zeta function", eq. 5).
// In double.
template <typename T>
HOLDFAST_HD T HurwitzZeta(T order, T start) {
  constexpr double kCoefficients[] = {// B(2j) / (2j)!
                                      1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0};
  const double s = static_cast<double>(order);
  double q = static_cast<double>(start);
  if (s == 1) return static_cast<T>(INFINITY);
  if (!(s > 1)) return static_cast<T>(NAN);
  if (q <= 0) {
    if (q == std::floor(q)) return static_cast<T>(INFINITY);
    if (s != std::floor(s)) return static_cast<T>(NAN);
  }
  double sum = 0;
  // A term for each step up to where the expansion of the rest converges.
  if (q < -1000) return static_cast<T>(NAN);
  const double until = 12 + (s < 64 ? s / 3 : 21);
  while (q < until) {
    sum += std::pow(q, -s);
    q += 1;
  }
  const double last = std::pow(q, -s);
  sum += last * q / (s - 1) + 0.5 * last;
  double factor = s, power = last / q;
  for (int j = 0; j < 8; ++j) {
    sum += kCoefficients[j] * factor * power;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    power /= q * q;
  }
  return static_cast<T>(sum);
}

// Giles' approximation (2010, "Approximating the erfinv function"), then
// Newton's step, twice in double.
template <typename T>
HOLDFAST_HD T InverseErf(T value) {
  const double y = static_cast<double>(value);
  if (std::fabs(y) >= 1) {
    return static_cast<T>(y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN);
  }
  double w = -std::log((1 - y) * (1 + y)), p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    p = 3.43273939e-07 + p * w;
    p = -3.5233877e-06 + p * w;
    p = -4.39150654e-06 + p * w;
    p = 0.00021858087 + p * w;
    p = -0.00125372503 + p * w;
    p = -0.00417768164 + p * w;
    p = 0.246640727 + p * w;
    p = 1.50140941 + p * w;
  } else {
    w = std::sqrt(w) - 3;
    p = -0.000200214257;
    p = 0.000100950558 + p * w;
    p = 0.00134934322 + p * w;
    p = -0.00367342844 + p * w;
    p = 0.00573950773 + p * w;
    p = -0.0076224613 + p * w;
    p = 0.00943887047 + p * w;
    p = 1.00167406 + p * w;
    p = 2.83297682 + p * w;
  }
  double x = p * y;
  constexpr double kHalfRootPi = 0.88622692545275801365;
  for (int step = 0; step < 2; ++step) {
    // Near the ends erfc keeps the digits that erf has lost.
    const double error = x > 0.5    ? (1 - y) - std::erfc(x)
                         : x < -0.5 ? std::erfc(-x) - (1 + y)
                                    : std::erf(x) - y;
    x -= error * kHalfRootPi * std::exp(x * x);
  }
  return static_cast<T>(x);
}

// Division of integers by zero gives 0 here; kernels refuse it first.
template <typename T>
HOLDFAST_HD T TruncatedRemainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T(0)) return T(0);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T(0);
    return static_cast<T>(a % b);
  }
}

template <typename T>
HOLDFAST_HD T GreatestCommonDivisor(T a, T b) {
  while (b != T(0)) {
    const T rest = TruncatedRemainder(a, b);
    a = b;
    b = rest;
  }
  return Abs(a);
}

template <typename T>
HOLDFAST_HD T LeastCommonMultiple(T a, T b) {
  const T divisor = GreatestCommonDivisor(a, b);
  if (divisor == T(0)) return T(0);
  return Abs(Multiply(static_cast<T>(a / divisor), b));
}

// A count outside the type's width moves every bit out.
template <typename T>
HOLDFAST_HD T ShiftLeft(T a, T b) {
  const bool inside = b >= T(0) && b < static_cast<T>(8 * sizeof(T));
  return inside ? static_cast<T>(static_cast<Unsigned<T>>(a) << b) : T(0);
}
template <typename T>
HOLDFAST_HD T ShiftRight(T a, T b) {
  const bool inside = b >= T(0) && b < static_cast<T>(8 * sizeof(T));
  const T far = a < T(0) ? static_cast<T>(-1) : T(0);
  return inside ? static_cast<T>(a >> b) : far;
}

namespace special {

HOLDFAST_SPECIAL_UNARY_OPS(HOLDFAST_DEFINE_UNARY)
HOLDFAST_SPECIAL_BINARY_OPS(HOLDFAST_DEFINE_BINARY)

}  // namespace special

template <>
inline constexpr bool kDividesIntegers<special::fmod> = true;
template <>
inline constexpr DivisionResult kDivisionResult<special::fmod> =
    DivisionResult::kTruncatedRemainder;
template <>
inline constexpr bool kDividesIntegers<special::gcd> = true;
template <>
inline constexpr bool kDividesIntegers<special::lcm> = true;

}  // namespace elementwise
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_ELEMENTWISE_SPECIAL_H_
