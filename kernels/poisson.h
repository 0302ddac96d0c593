// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Poisson random numbers, exact for every rate: products of uniform numbers
// below 10, from there on transformed rejection (Hormann, "The transformed
// rejection method for generating Poisson random variables", 1993, algorithm
// PTRS). How many uniform numbers an element takes depends on them, so each
// element has a stream of its own: its counter's upper words count it.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_POISSON_H_
#define HOLDFAST_KERNELS_POISSON_H_

#include <cmath>
#include <cstdint>

#include "kernels/elementwise_special.h"
#include "kernels/philox.h"

namespace holdfast {

// Pairs of uniform numbers in (0, 1] of one element.
class UniformPairs {
 public:
  HOLDFAST_HD UniformPairs(uint64_t seed, uint64_t position)
      : seed_(seed), position_(position) {}
  HOLDFAST_HD void Next(double* first, double* second) {
    const uint32_t counter[4] = {static_cast<uint32_t>(position_),
                                 static_cast<uint32_t>(position_ >> 32),
                                 drawn_++, 0};
    const PhiloxWords x = Philox4x32(counter, static_cast<uint32_t>(seed_),
                                     static_cast<uint32_t>(seed_ >> 32));
    *first = PositiveDouble(JoinWords(x.w[0], x.w[1]));
    *second = PositiveDouble(JoinWords(x.w[2], x.w[3]));
  }

 private:
  uint64_t seed_, position_;
  uint32_t drawn_ = 0;
};

// log of rate^k exp(-rate) / k!, k a whole number, without the difference of
// large numbers: Stirling's series, and log(k / rate) by way of log1p.
HOLDFAST_HD double LogPoisson(double k, double rate) {
  if (k < 10) {
    return k * std::log(rate) - rate - elementwise::LogGamma(k + 1);
  }
  constexpr double kLogRootTwoPi = 0.91893853320467274178;
  const double inverse = 1 / (k * k);
  const double stirling =
      (1.0 / 12 -
       (1.0 / 360 - (1.0 / 1260 - inverse / 1680) * inverse) * inverse) /
      k;
  const double x = (rate - k) / k;
  return k * (std::log1p(x) - x) - 0.5 * std::log(k) - kLogRootTwoPi - stirling;
}

// REQUIRES: 0 <= rate < infinity.
HOLDFAST_HD double PoissonNumber(uint64_t seed, uint64_t position,
                                 double rate) {
  UniformPairs uniform(seed, position);
  double u, v;
  if (rate < 10) {
    const double end = std::exp(-rate);
    double product = 1;
    for (double k = 0;; k += 2) {
      uniform.Next(&u, &v);
      if ((product *= u) < end || rate == 0) return k;
      if ((product *= v) < end) return k + 1;
    }
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double accepted = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    uniform.Next(&u, &v);
    u -= 0.5;
    const double from_edge = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / from_edge + b) * u + rate + 0.43);
    if (from_edge >= 0.07 && v <= accepted) return k;
    if (k < 0 || (from_edge < 0.013 && v > from_edge)) continue;
    if (std::log(v * inverse_alpha / (a / (from_edge * from_edge) + b)) <=
        LogPoisson(k, rate)) {
      return k;
    }
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_POISSON_H_
