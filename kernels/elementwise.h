// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The elementwise ops as scalar functions, one row each, shared by every
// device: a row makes the functor elementwise::op::<name>, and each device's
// loops and kernel symbols are stamped out of the same lists. Integer
// arithmetic wraps and never traps; NaN goes where PyTorch lets it go.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_ELEMENTWISE_H_
#define HOLDFAST_KERNELS_ELEMENTWISE_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/elementwise_stamps.h"
#include "ops/complex.h"
#include "ops/half.h"
#include "ops/host_device.h"

// clang-format off

// X(op, types, expression): the expression sees `a`, of type T.
#define HOLDFAST_UNARY_OPS(X)                                    \
  X(neg, WithComplex<NumericTypes>, Negate(a))                   \
  X(abs, NumericTypes, Abs(a))                                   \
  X(sign, AllTypes, Sign(a))                                     \
  X(relu, NumericTypes, a < T(0) ? T(0) : a)                     \
  X(exp, WithComplex<MathTypes>, Exp(a))                         \
  X(expm1, MathTypes, std::expm1(a))                             \
  X(log, WithComplex<MathTypes>, Log(a))                         \
  X(log2, MathTypes, std::log2(a))                               \
  X(log1p, MathTypes, std::log1p(a))                             \
  X(sqrt, WithComplex<MathTypes>, Sqrt(a))                       \
  X(rsqrt, WithComplex<MathTypes>, T(1) / Sqrt(a))               \
  X(reciprocal, WithComplex<MathTypes>, T(1) / a)                \
  X(sin, WithComplex<MathTypes>, Sin(a))                         \
  X(cos, WithComplex<MathTypes>, Cos(a))                         \
  X(tanh, WithComplex<MathTypes>, Tanh(a))                       \
  X(sigmoid, WithComplex<MathTypes>, T(1) / (T(1) + Exp(-a)))    \
  X(erf, MathTypes, std::erf(a))                                 \
  X(floor, NumericTypes, Floor(a))                               \
  X(ceil, NumericTypes, Ceil(a))                                 \
  X(round, NumericTypes, RoundHalfToEven(a))

// Result bool.
#define HOLDFAST_UNARY_PREDICATES(X)                             \
  X(logical_not, AllTypes, a == T(0))                            \
  X(isnan, WithComplex<AllTypes>, a != a)                        \
  X(isfinite, WithComplex<AllTypes>, IsFinite(a))

// The expression sees `a` and `b`, both of type T.
#define HOLDFAST_BINARY_OPS(X)                                   \
  X(add, WithComplex<AllTypes>, Add(a, b))                       \
  X(sub, WithComplex<NumericTypes>, Subtract(a, b))              \
  X(mul, WithComplex<AllTypes>, Multiply(a, b))                  \
  X(div, WithComplex<FloatTypes>, a / b)                         \
  X(floor_divide, NumericTypes, FloorDivide(a, b))               \
  X(remainder, NumericTypes, Remainder(a, b))                    \
  X(pow, WithComplex<AllMathTypes>, Pow(a, b))                   \
  X(maximum, AllTypes, (a > b || a != a) ? a : b)                \
  X(minimum, AllTypes, (a < b || a != a) ? a : b)                \
  X(bitwise_and, IntegralTypes, static_cast<T>(a & b))           \
  X(bitwise_or, IntegralTypes, static_cast<T>(a | b))            \
  X(bitwise_xor, IntegralTypes, static_cast<T>(a ^ b))           \
  X(relu_backward, NumericTypes, b <= T(0) ? T(0) : a)

// Result bool.
#define HOLDFAST_BINARY_PREDICATES(X)                            \
  X(eq, WithComplex<AllTypes>, a == b)                           \
  X(ne, WithComplex<AllTypes>, a != b)                           \
  X(lt, AllTypes, a < b)                                         \
  X(le, AllTypes, a <= b)                                        \
  X(gt, AllTypes, a > b)                                         \
  X(ge, AllTypes, a >= b)                                        \
  X(logical_and, AllTypes, (a != T(0)) & (b != T(0)))            \
  X(logical_or, AllTypes, (a != T(0)) | (b != T(0)))             \
  X(logical_xor, AllTypes, (a != T(0)) != (b != T(0)))

// clang-format on

namespace holdfast {
namespace elementwise {

// Which computation types a row is compiled for. `kPadded`: the function calls
// a vector routine of the mathematical library, whose last bits differ from
// the scalar routine's; a loop must push its last elements through the vector
// routine as well, so that a result does not depend on its position.
struct AllTypes {
  template <typename T>
  static constexpr bool kHas = !kIsComplex<T>;
  template <typename T>
  static constexpr bool kPadded = false;
};
struct NumericTypes : AllTypes {
  template <typename T>
  static constexpr bool kHas = !std::is_same_v<T, bool> && !kIsComplex<T>;
};
struct IntegralTypes : AllTypes {
  template <typename T>
  static constexpr bool kHas = std::is_integral_v<T>;
};
struct FloatTypes : AllTypes {
  template <typename T>
  static constexpr bool kHas = std::is_floating_point_v<T>;
};
struct AllMathTypes : AllTypes {
  template <typename T>
  static constexpr bool kPadded = std::is_floating_point_v<T>;
};
struct MathTypes : FloatTypes {
  template <typename T>
  static constexpr bool kPadded = true;
};
template <typename Real>
struct WithComplex : Real {
  template <typename T>
  static constexpr bool kHas = kIsComplex<T> || Real::template kHas<T>;
  template <typename T>
  static constexpr bool kPadded = !kIsComplex<T> && Real::template kPadded<T>;
};

// One name for the functions of real and complex numbers (ops/complex.h).
#define HOLDFAST_REAL_AND_COMPLEX(Name, name) \
  template <typename T>                       \
  HOLDFAST_HD T Name(T a) {                   \
    if constexpr (kIsComplex<T>) {            \
      return ::holdfast::Name(a);             \
    } else {                                  \
      return std::name(a);                    \
    }                                         \
  }
HOLDFAST_REAL_AND_COMPLEX(Exp, exp)
HOLDFAST_REAL_AND_COMPLEX(Log, log)
HOLDFAST_REAL_AND_COMPLEX(Sqrt, sqrt)
HOLDFAST_REAL_AND_COMPLEX(Sin, sin)
HOLDFAST_REAL_AND_COMPLEX(Cos, cos)
HOLDFAST_REAL_AND_COMPLEX(Tanh, tanh)
#undef HOLDFAST_REAL_AND_COMPLEX

// Signed overflow is undefined, so arithmetic happens in the unsigned type.
template <typename T>
using Unsigned = std::make_unsigned_t<
    std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>>;

// Conversion between element types. A number that does not fit an integer
// type goes to its nearest value (uint8: by way of int32, then modulo 256, so
// that -1.0 is 255 as in PyTorch), NaN to 0. To bool: nonzero.
template <typename To, typename From>
HOLDFAST_HD To Cast(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    using Wide = std::conditional_t<sizeof(To) < 4, int32_t, To>;
    constexpr From kLow = static_cast<From>(std::numeric_limits<Wide>::min());
    const bool below = v < kLow;
    const bool above = v >= -kLow;          // -min is max + 1, which is exact
    const bool fits = !below && v < -kLow;  // false for NaN
    const Wide inside = static_cast<Wide>(fits ? v : From(0));
    return static_cast<To>(above   ? std::numeric_limits<Wide>::max()
                           : below ? std::numeric_limits<Wide>::min()
                                   : inside);
  } else {
    return static_cast<To>(v);
  }
}

template <typename T>
HOLDFAST_HD T Add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a | b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) +
                          static_cast<Unsigned<T>>(b));
  } else {
    return a + b;
  }
}

template <typename T>
HOLDFAST_HD T Subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) -
                          static_cast<Unsigned<T>>(b));
  } else {
    return a - b;
  }
}

template <typename T>
HOLDFAST_HD T Multiply(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a & b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) *
                          static_cast<Unsigned<T>>(b));
  } else {
    return a * b;
  }
}

template <typename T>
HOLDFAST_HD T Negate(T a) {
  if constexpr (std::is_integral_v<T>) {
    return Subtract(T(0), a);
  } else {
    return -a;
  }
}

template <typename T>
HOLDFAST_HD T Abs(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(a);
  } else {
    return a < T(0) ? Negate(a) : a;
  }
}

template <typename T>
HOLDFAST_HD T Sign(T a) {
  if constexpr (std::is_unsigned_v<T>) {  // bool included
    return a != T(0);
  } else {
    return static_cast<T>((a > T(0)) - (a < T(0)));
  }
}

template <typename T>
HOLDFAST_HD T Floor(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(a);
  } else {
    return a;
  }
}

template <typename T>
HOLDFAST_HD T Ceil(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::ceil(a);
  } else {
    return a;
  }
}

template <typename T>
HOLDFAST_HD T RoundHalfToEven(T a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::rint(a);  // in the default rounding mode, which nobody changes
  } else {
    return a;
  }
}

template <typename T>
HOLDFAST_HD bool IsFinite(T a) {
  if constexpr (kIsComplex<T>) {
    return IsFinite(a.real) && IsFinite(a.imag);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(a) <= std::numeric_limits<T>::max();
  } else {
    return true;
  }
}

// Division of integers by zero gives 0 here. Kernels refuse zero divisors
// first, but the memory may be shared with a client that changes it meanwhile.
template <typename T>
HOLDFAST_HD T FloorDivide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == T(0)) return a / b;
    const T mod = std::fmod(a, b);
    T quotient = (a - mod) / b;
    if (mod != T(0) && (b < T(0)) != (mod < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    const T floor = std::floor(quotient);
    return quotient - floor > T(0.5) ? floor + T(1) : floor;
  } else if constexpr (std::is_unsigned_v<T>) {
    return b == T(0) ? T(0) : static_cast<T>(a / b);
  } else {
    if (b == T(0)) return T(0);
    if (b == T(-1)) return Negate(a);  // min / -1 would trap
    const T quotient = a / b;
    return (a % b != T(0) && (a < T(0)) != (b < T(0))) ? quotient - T(1)
                                                       : quotient;
  }
}

template <typename T>
HOLDFAST_HD T Remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T mod = std::fmod(a, b);
    return mod != T(0) && (b < T(0)) != (mod < T(0)) ? mod + b : mod;
  } else if constexpr (std::is_unsigned_v<T>) {
    return b == T(0) ? T(0) : static_cast<T>(a % b);
  } else {
    if (b == T(0) || b == T(-1)) return T(0);
    const T mod = a % b;
    return mod != T(0) && (b < T(0)) != (mod < T(0)) ? mod + b : mod;
  }
}

template <typename T>
HOLDFAST_HD T Pow(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return Power(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else if constexpr (std::is_same_v<T, bool>) {
    return a | !b;
  } else {
    // 1/a rounded toward zero: 0 unless a is 1 or -1.
    if constexpr (std::is_signed_v<T>) {
      if (b < T(0)) {
        return a == T(1)    ? T(1)
               : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1))
                            : T(0);
      }
    }
    uint64_t result = 1;
    uint64_t square = static_cast<uint64_t>(a);
    for (uint64_t bits = static_cast<uint64_t>(b); bits != 0; bits >>= 1) {
      if (bits & 1) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
}

// Not rows, since their operands are not all of one kind.
template <typename T>
HOLDFAST_HD T Clamp(T a, T low, T high) {
  const T raised = (low <= a || a != a) ? a : low;
  return (raised <= high || raised != raised) ? raised : high;
}

namespace op {

HOLDFAST_UNARY_OPS(HOLDFAST_DEFINE_UNARY)
HOLDFAST_UNARY_PREDICATES(HOLDFAST_DEFINE_UNARY_PREDICATE)
HOLDFAST_BINARY_OPS(HOLDFAST_DEFINE_BINARY)
HOLDFAST_BINARY_PREDICATES(HOLDFAST_DEFINE_BINARY_PREDICATE)

}  // namespace op

// Ops that divide integers by operand b: its elements are loaded once.
template <typename Op>
inline constexpr bool kDividesIntegers = false;
template <>
inline constexpr bool kDividesIntegers<op::floor_divide> = true;
template <>
inline constexpr bool kDividesIntegers<op::remainder> = true;

// Ops that are made of a quotient rounded towards zero and what it leaves; a
// device may compute these two in its own way.
enum class DivisionResult { kNone, kFloor, kRemainder, kTruncatedRemainder };
template <typename Op>
inline constexpr DivisionResult kDivisionResult = DivisionResult::kNone;
template <>
inline constexpr DivisionResult kDivisionResult<op::floor_divide> =
    DivisionResult::kFloor;
template <>
inline constexpr DivisionResult kDivisionResult<op::remainder> =
    DivisionResult::kRemainder;

}  // namespace elementwise
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_ELEMENTWISE_H_
