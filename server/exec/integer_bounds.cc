// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/integer_bounds.h"

#include <algorithm>
#include <limits>

namespace holdfast {
namespace {

// Two passes, each of which the compiler makes a wide loop of.
template <typename T>
IntegerBounds Scan(const T* data, size_t count) {
  T least = data[0], most = data[0];
  for (size_t i = 1; i < count; ++i) {
    least = std::min(least, data[i]);
    most = std::max(most, data[i]);
  }
  T second = most;
  for (size_t i = 0; i < count; ++i) {
    second = std::min(second, data[i] == least ? most : data[i]);
  }
  return {least, second, most};
}

template <typename T>
IntegerBounds BoundsOfNumbers() {
  return IntegerBounds::Of(std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max());
}

}  // namespace

IntegerBounds Union(const IntegerBounds& a, const IntegerBounds& b) {
  if (b.least < a.least) return Union(b, a);
  IntegerBounds both = a;
  both.most = std::max(a.most, b.most);
  if (a.most == a.least) {
    both.second = b.least > a.least ? b.least : b.second;
  } else if (b.least > a.least) {
    both.second = std::min(a.second, b.least);
  } else if (b.most > b.least) {
    both.second = std::min(a.second, b.second);
  }
  return both;
}

KnownBounds BoundsOfType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return IntegerBounds::Of(0, 1);
    case DType::kUInt8:
      return BoundsOfNumbers<uint8_t>();
    case DType::kInt8:
      return BoundsOfNumbers<int8_t>();
    case DType::kInt16:
      return BoundsOfNumbers<int16_t>();
    default:
      return std::nullopt;
  }
}

bool Fit(const IntegerBounds& bounds, DType dtype) {
  const IntegerBounds all =
      dtype == DType::kInt64 ? BoundsOfNumbers<int64_t>()
      : dtype == DType::kInt32
          ? BoundsOfNumbers<int32_t>()
          : BoundsOfType(dtype).value_or(IntegerBounds::Of(0, -1));
  return bounds.Within(all.least, all.most);
}

KnownBounds BoundsOfElements(DType dtype, const void* data, size_t count) {
  if (count == 0) return std::nullopt;
  if (dtype == DType::kInt64) {
    return Scan(static_cast<const int64_t*>(data), count);
  }
  if (dtype == DType::kInt32) {
    return Scan(static_cast<const int32_t*>(data), count);
  }
  return std::nullopt;
}

}  // namespace holdfast
