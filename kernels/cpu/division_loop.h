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

namespace holdfast::cpu {

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

// Division by one number by way of a multiplication, exact for all dividends
// (Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994, figure 5.2). REQUIRES: divisor is not -1, 0 or 1.
class InvariantDivisor {
 public:
  explicit InvariantDivisor(int64_t divisor)
      : divisor_(divisor), sign_(divisor >> 63) {
    const uint64_t size = divisor < 0 ? 0 - static_cast<uint64_t>(divisor)
                                      : static_cast<uint64_t>(divisor);
    const int bits = 64 - __builtin_clzll(size - 1);  // log2, rounded up
    shift_ = bits - 1;
    factor_ = static_cast<int64_t>(static_cast<uint64_t>(
        (static_cast<unsigned __int128>(1) << (63 + bits)) / size + 1));
  }
  // Rounded towards zero.
  HOLDFAST_INLINE int64_t Quotient(int64_t x) const {
    const auto product = static_cast<__int128>(factor_) * x;
    const int64_t high = x + static_cast<int64_t>(product >> 64);
    return (((high >> shift_) - (x >> 63)) ^ sign_) - sign_;
  }
  // Rounded down (figure 6.1). REQUIRES: divisor > 0.
  HOLDFAST_INLINE int64_t Floor(int64_t x) const {
    const int64_t sign = x >> 63;
    const auto product =
        static_cast<unsigned __int128>(static_cast<uint64_t>(factor_)) *
        static_cast<uint64_t>(x ^ sign);
    return static_cast<int64_t>(static_cast<uint64_t>(product >> 64) >>
                                shift_) ^
           sign;
  }
  HOLDFAST_INLINE int64_t Rest(int64_t x, int64_t quotient) const {
    // Unsigned: the product of a floor may lie below the smallest number.
    return static_cast<int64_t>(static_cast<uint64_t>(x) -
                                static_cast<uint64_t>(quotient) *
                                    static_cast<uint64_t>(divisor_));
  }
  // All ones where a floor is one less than the quotient, else 0.
  HOLDFAST_INLINE int64_t Down(int64_t rest) const {
    return -static_cast<int64_t>((rest != 0) & ((rest ^ divisor_) < 0));
  }
  int64_t divisor() const { return divisor_; }

 private:
  int64_t divisor_, sign_, factor_;
  int shift_;
};

// The divisor if all n have the same and it is one for InvariantDivisor, else
// 0.
HOLDFAST_INLINE int64_t OneDivisor(const int64_t* b, int64_t n) {
  const int64_t divisor = LoadOnce(b);
  int64_t different = 0;
  for (int64_t j = 0; j < n; ++j) different |= b[j] ^ divisor;
  const bool small = divisor >= -1 && divisor <= 1;
  return different == 0 && !small ? divisor : 0;
}

template <elementwise::DivisionResult kWanted>
HOLDFAST_INLINE void DivideByOne(const InvariantDivisor& by, const int64_t* a,
                                 int64_t* out, int64_t n) {
  using elementwise::DivisionResult;
  if (kWanted != DivisionResult::kTruncatedRemainder && by.divisor() > 0) {
    constexpr bool kFloor = kWanted == DivisionResult::kFloor;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t floor = by.Floor(a[j]);
      out[j] = kFloor ? floor : by.Rest(a[j], floor);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const int64_t quotient = by.Quotient(a[j]);
    const int64_t rest = by.Rest(a[j], quotient);
    if constexpr (kWanted == DivisionResult::kFloor) {
      out[j] = quotient + by.Down(rest);
    } else if constexpr (kWanted == DivisionResult::kRemainder) {
      out[j] = rest + (by.divisor() & by.Down(rest));
    } else {
      out[j] = rest;
    }
  }
}

// out may be a or b.
template <typename Op, typename T>
HOLDFAST_INLINE void DivisionLoop(const T* a, const T* b, T* out, int64_t n) {
  using elementwise::DivisionResult;
  constexpr DivisionResult kWanted = elementwise::kDivisionResult<Op>;
  Divisions d;
  for (int64_t i = 0; i < n; i += Divisions::kSize) {
    const int64_t m = std::min(Divisions::kSize, n - i);
    if constexpr (std::is_same_v<T, int64_t>) {
      if (const int64_t divisor = OneDivisor(b + i, m); divisor != 0) {
        DivideByOne<kWanted>(InvariantDivisor(divisor), a + i, out + i, m);
        continue;
      }
    }
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

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_DIVISION_LOOP_H_
