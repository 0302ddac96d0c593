// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bessel functions of order 0 and 1, the scaled error function and what follows
// from it for the normal distribution: what the op special_function computes,
// one row each, shared by every device as
// kernels/elementwise.h has the other elementwise ops: a row makes the function
// elementwise::named::<name>(double). Formulas by their numbers in the
// NIST Digital Library of Mathematical Functions (dlmf.nist.gov).
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_BESSEL_H_
#define HOLDFAST_KERNELS_BESSEL_H_

#include <cmath>

#include "kernels/elementwise.h"

// clang-format off

// X(name, expression): the name as torch.special has it; the expression sees
// `x`, a double.
#define HOLDFAST_SPECIAL_FUNCTIONS(X)                              \
  X(bessel_j0, ::j0(x))                                            \
  X(bessel_j1, ::j1(x))                                            \
  X(bessel_y0, x < 0 ? NAN : ::y0(x))                              \
  X(bessel_y1, x < 0 ? NAN : ::y1(x))                              \
  X(i0, ScaledBesselI(0, x) * std::exp(std::fabs(x)))              \
  X(i0e, ScaledBesselI(0, x))                                      \
  X(i1, ScaledBesselI(1, x) * std::exp(std::fabs(x)))              \
  X(i1e, ScaledBesselI(1, x))                                      \
  X(modified_bessel_k0, ScaledBesselK(0, x) * std::exp(-x))        \
  X(modified_bessel_k1, ScaledBesselK(1, x) * std::exp(-x))        \
  X(scaled_modified_bessel_k0, ScaledBesselK(0, x))                \
  X(scaled_modified_bessel_k1, ScaledBesselK(1, x))                \
  X(erfcx, ScaledErfc(x))                                          \
  X(log_ndtr, LogNormalBelow(x))                                   \
  X(ndtri, NormalQuantile(x))

// clang-format on

namespace holdfast {
namespace elementwise {

// exp(-|x|) I_n(x), n 0 or 1: the power series (10.25.2), whose terms are all
// positive, then the asymptotic one (10.40.1), whose terms shrink up to 2 |x|.
HOLDFAST_HD double ScaledBesselI(int n, double x) {
  const double z = std::fabs(x);
  double sum = 1;
  if (z < 25) {
    const double square = z * z / 4;
    double term = 1;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= square / (k * (k + n));
      sum += term;
    }
    sum *= std::exp(-z) * (n == 0 ? 1.0 : z / 2);
  } else {
    double term = 1;
    for (int k = 1; k < 40 && std::fabs(term) > 1e-17; ++k) {
      const double odd = 2 * k - 1;
      term *= (odd * odd - 4 * n * n) / (8 * k * z);
      sum += term;
    }
    sum /= 2.50662827463100050242 * std::sqrt(z);  // sqrt(2 pi z)
  }
  if (x != x) return x;
  return n == 1 && x < 0 ? -sum : sum;
}

// exp(x) K_n(x), n 0 or 1: the power series (10.31.1, 10.31.2) up to 1, then
// the integral (10.32.9) of exp(-x (cosh t - 1)) cosh(n t) by the trapezoidal
// rule, which for such a function converges exponentially.
HOLDFAST_HD double ScaledBesselK(int n, double x) {
  if (x != x || x < 0) return NAN;
  if (x == 0) return INFINITY;
  if (x == INFINITY) return 0;
  if (x <= 1) {
    constexpr double kGamma = 0.57721566490153286061;
    const double square = x * x / 4, log_half = std::log(x / 2);
    // psi(k + 1) summed up; terms of I_n and of the rest side by side.
    double psi = -kGamma, term = 1, sum = 0;
    for (int k = 0; k < 20; ++k) {
      const double next = psi + 1.0 / (k + 1);
      sum += term * (n == 0 ? psi - log_half : log_half - (psi + next) / 2);
      term *= square / ((k + 1) * (k + 1 + n));
      psi = next;
    }
    return std::exp(x) * (n == 0 ? sum : 1 / x + x / 2 * sum);
  }
  const double step = std::fmin(0.2, 0.6 / std::sqrt(x));
  double sum = 0.5;
  for (int k = 1;; ++k) {
    const double t = k * step, half = std::sinh(t / 2);
    const double term =
        std::exp(-2 * x * half * half) * (n == 0 ? 1.0 : 1 + 2 * half * half);
    sum += term;
    if (term < sum * 1e-18) break;
  }
  return sum * step;
}

// exp(x^2) erfc(x); x^2 in two parts, because its rounding error would be
// multiplied by itself. Far out the asymptotic series (7.12.1).
HOLDFAST_HD double ScaledErfc(double x) {
  if (x < 20) {
    const double square = x * x;
    if (square > 800) return INFINITY;  // x is negative
    const double rest = std::fma(x, x, -square);
    return std::exp(square) * (1 + rest) * std::erfc(x);
  }
  constexpr double kInverseRootPi = 0.56418958354775628695;
  const double inverse = 0.5 / x / x;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) sum += term *= -(2 * k - 1) * inverse;
  return kInverseRootPi / x * sum;
}

// log of the normal distribution function.
HOLDFAST_HD double LogNormalBelow(double x) {
  constexpr double kRootHalf = 0.70710678118654752440;
  if (x > -1) return std::log1p(-0.5 * std::erfc(x * kRootHalf));
  return std::log(0.5 * ScaledErfc(-x * kRootHalf)) - 0.5 * x * x;
}

// The inverse of the normal distribution function: Newton's steps on its
// logarithm, which is concave, from where the tail would be without its slowly
// varying factor.
HOLDFAST_HD double NormalQuantile(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  const double sign = p > 0.5 ? -1 : 1;
  if (p > 0.5) p = 1 - p;  // exact
  constexpr double kTwoPi = 6.28318530717958647692;
  constexpr double kRootHalf = 0.70710678118654752440;
  const double goal = std::log(p), far = -2 * goal;
  double x = far > 6
                 ? -std::sqrt(far - std::log(kTwoPi * (far - std::log(far))))
                 : (p - 0.5) * 2.5066282746310002;
  for (int step = 0; step < 12; ++step) {
    // d log(Phi) / dx = phi / Phi = sqrt(2 / pi) / erfcx(-x / sqrt(2)).
    const double scaled = ScaledErfc(-x * kRootHalf);
    const double error = std::log(0.5 * scaled) - 0.5 * x * x - goal;
    const double change = error * scaled * 1.25331413731550025121;
    x -= change;
    if (std::fabs(change) <= 1e-16 * std::fabs(x)) break;
  }
  return sign * x;
}

namespace named {

#define HOLDFAST_DEFINE_NAMED(name, expression) \
  HOLDFAST_HD double name(double x) { return expression; }
HOLDFAST_SPECIAL_FUNCTIONS(HOLDFAST_DEFINE_NAMED)
#undef HOLDFAST_DEFINE_NAMED

}  // namespace named
}  // namespace elementwise
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_BESSEL_H_
