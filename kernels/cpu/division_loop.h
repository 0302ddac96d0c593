// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops of floor_divide, remainder and fmod. Neither fmod nor the division
// of integers has vector instructions, but where operands or quotients are not
// large, a division of doubles, rounded towards zero, gives the same quotient
// and the exact rest. A block with other operands (also infinities, NaN, and
// floats divided by zero) goes through the scalar functions of
// kernels/elementwise.h, which give equal results.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_DIVISION_LOOP_H_
#define HOLDFAST_KERNELS_CPU_DIVISION_LOOP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/load_once.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/elementwise.h"

namespace holdfast {

// One block's divisions: x = quotient * y + rest. All in double, and without
// branches, so that the loops over them vectorise.
struct Divisions {
  static constexpr int64_t kSize = 256;
  // Of y and quotient, the zeros have signs. Integers divided by zero: y is 1,
  // and the others are 0.
  double y[kSize], quotient[kSize], rest[kSize];
};

// Fills in n divisions; false if one is not exact. Integers are exact unless
// large, floats while quotients are small enough for T to hold them, and for
// the scalar functions to compute them without rounding.
template <typename T>
HOLDFAST_INLINE bool DivideTruncated(const T* a, const T* b, int64_t n,
                                     Divisions* d) {
  constexpr bool kWhole = std::is_integral_v<T>;
  constexpr bool kFloat = std::is_same_v<T, float>;
  constexpr double kLimit = kWhole   ? 2251799813685248.0   // 2^51
                            : kFloat ? 8388608.0            // 2^23
                                     : 1125899906842624.0;  // 2^50
  constexpr double kMax =
      kWhole ? kLimit : static_cast<double>(std::numeric_limits<T>::max());
  int64_t inexact = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double dividend = static_cast<double>(a[j]);
    const double divisor = static_cast<double>(b[j]);
    const double x = kWhole && divisor == 0 ? 0.0 : dividend;
    const double y = kWhole && divisor == 0 ? 1.0 : divisor;
    const double ratio = x / y;
    double quotient = std::trunc(ratio);
    double rest;
    if constexpr (kWhole || kFloat) {
      rest = x - quotient * y;  // a product of 51 bits, of 23 and 24 bits
    } else {
      rest = std::fma(-quotient, y, x);
      // The ratio may have been rounded up to a whole number.
      const bool over = (rest != 0) & (std::copysign(1.0, rest) * x < 0);
      quotient = std::copysign(std::fabs(quotient) - (over ? 1.0 : 0.0), ratio);
      rest += over ? std::copysign(y, x) : 0.0;
    }
    const double tested = kWhole ? dividend : ratio;
    inexact |= static_cast<int64_t>(
        !((std::fabs(tested) < kLimit) & (std::fabs(y) <= kMax)));
    d->y[j] = y;
    d->quotient[j] = quotient;
    d->rest[j] = kWhole ? rest : std::copysign(rest, x);
  }
  return inexact == 0;
}

// out may be a or b.
template <typename Op, typename T>
HOLDFAST_INLINE void DivisionLoop(const T* a, const T* b, T* out, int64_t n) {
  using elementwise::DivisionResult;
  constexpr DivisionResult kWanted = elementwise::kDivisionResult<Op>;
  Divisions d;
  for (int64_t i = 0; i < n; i += Divisions::kSize) {
    const int64_t m = std::min(Divisions::kSize, n - i);
    if (!DivideTruncated(a + i, b + i, m, &d)) {
      for (int64_t j = i; j < i + m; ++j) {
        // A divisor is tested and used: from one load, because a client that
        // shares the memory could write a zero in between.
        if constexpr (std::is_integral_v<T>) {
          out[j] = Op::template Apply<T>(a[j], LoadOnce(b + j));
        } else {
          out[j] = Op::template Apply<T>(a[j], b[j]);
        }
      }
      continue;
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < m; ++j) {
      const double rest = d.rest[j], y = d.y[j];
      const bool down = (rest != 0) & (std::copysign(1.0, rest) * y < 0);
      if constexpr (kWanted == DivisionResult::kFloor) {
        double floor = d.quotient[j] - (down ? 1.0 : 0.0);
        if constexpr (std::is_same_v<T, int32_t>) {
          // min / -1 wraps.
          constexpr double kMin = std::numeric_limits<T>::min();
          floor = floor == -kMin ? kMin : floor;
        }
        out[i + j] = static_cast<T>(floor);
      } else if constexpr (kWanted == DivisionResult::kRemainder) {
        // As the scalar functions round it, in T.
        const T sum = static_cast<T>(static_cast<T>(rest) + static_cast<T>(y));
        out[i + j] = down ? sum : static_cast<T>(rest);
      } else {
        out[i + j] = static_cast<T>(rest);
      }
    }
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CPU_DIVISION_LOOP_H_
