// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversion between any two element types, as every device does it.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_ELEMENT_CONVERT_H_
#define HOLDFAST_KERNELS_ELEMENT_CONVERT_H_

#include <cstdint>
#include <type_traits>

#include "kernels/elementwise.h"
#include "ops/complex.h"
#include "ops/half.h"
#include "ops/host_device.h"

namespace holdfast {

// The type that elements stored as T are computed in (ComputeType).
template <typename T>
struct Narrow;
template <>
struct Narrow<int8_t> {
  using Compute = int32_t;
};
template <>
struct Narrow<int16_t> {
  using Compute = int32_t;
};
template <>
struct Narrow<Float16> {
  using Compute = float;
};
template <>
struct Narrow<BFloat16> {
  using Compute = float;
};
template <typename T, typename = void>
struct ComputeOfType {
  using type = T;
};
template <typename T>
struct ComputeOfType<T, std::void_t<typename Narrow<T>::Compute>> {
  using type = typename Narrow<T>::Compute;
};
template <typename T>
using ComputeOf = typename ComputeOfType<T>::type;
template <typename T>
inline constexpr bool kIsNarrow = !std::is_same_v<ComputeOf<T>, T>;

// Between numbers: Cast. A complex number becomes its real part.
template <typename To, typename From>
HOLDFAST_HD To Convert(From v) {
  constexpr bool kFromHalf =
      std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>;
  constexpr bool kToHalf =
      std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (kFromHalf) {
    return Convert<To>(v.ToFloat());
  } else if constexpr (kToHalf) {
    return To::Of(Convert<float>(v));
  } else if constexpr (kIsComplex<From> && kIsComplex<To>) {
    using Part = decltype(To::real);
    return {static_cast<Part>(v.real), static_cast<Part>(v.imag)};
  } else if constexpr (kIsComplex<From>) {
    if constexpr (std::is_same_v<To, bool>) {
      return v.real != 0 || v.imag != 0;
    } else {
      return Convert<To>(v.real);
    }
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<decltype(To::real)>(v));
  } else if constexpr (kIsNarrow<To>) {
    return static_cast<To>(elementwise::Cast<int32_t>(v));
  } else if constexpr (kIsNarrow<From>) {
    return elementwise::Cast<To>(static_cast<int32_t>(v));
  } else {
    return elementwise::Cast<To>(v);
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_ELEMENT_CONVERT_H_
