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
  T second = most, before = least;
  for (size_t i = 0; i < count; ++i) {
    const T x = data[i];
    second = std::min(second, x == least ? most : x);
    before = std::max(before, x == most ? least : x);
  }
  return {least, second, before, most};
}

template <typename T>
IntegerBounds BoundsOfNumbers() {
  return IntegerBounds::Of(std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max());
}

}  // namespace

IntegerBounds Union(const IntegerBounds& a, const IntegerBounds& b) {
  const int64_t least = std::min(a.least, b.least);
  const int64_t most = std::max(a.most, b.most);
  IntegerBounds both = {least, most, least, most};
  const auto add = [&](int64_t low, int64_t high) {
    both.second = std::min(both.second, low);
    both.before = std::max(both.before, high);
  };
  for (const IntegerBounds* part : {&a, &b}) {
    if (!part->no_others()) add(part->second, part->before);
    for (const int64_t end : {part->least, part->most}) {
      if (end != least && end != most) add(end, end);
    }
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
