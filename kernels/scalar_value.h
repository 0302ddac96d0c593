// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A number attribute (bool, int or float) as an element of a tensor.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_SCALAR_VALUE_H_
#define HOLDFAST_KERNELS_SCALAR_VALUE_H_

#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>

#include "kernels/elementwise.h"
#include "ops/attrs.h"

namespace holdfast {

// Converts as tensors convert (Cast in kernels/elementwise.h).
// REQUIRES: AttrIsNumber(value).
template <typename T>
inline T ScalarAs(const AttrValue& value) {
  if (const bool* b = std::get_if<bool>(&value)) return static_cast<T>(*b);
  if (const int64_t* i = std::get_if<int64_t>(&value)) {
    return elementwise::Cast<T>(*i);
  }
  return elementwise::Cast<T>(std::get<double>(value));
}

// For bounds: an integer outside T's range goes to its nearest end.
template <typename T>
inline T SaturatedScalar(const AttrValue& value) {
  if constexpr (std::is_integral_v<T>) {
    if (const double* d = std::get_if<double>(&value)) {
      return elementwise::Cast<T>(*d);
    }
    const int64_t i = AttrAsInt(value);
    if (i > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    if (i < static_cast<int64_t>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    return static_cast<T>(i);
  } else {
    return ScalarAs<T>(value);
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_SCALAR_VALUE_H_
