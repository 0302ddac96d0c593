// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// IntegerBounds: what is known of the elements of an integer tensor without a
// look at the device's memory. Where it answers what an op would check of its
// indices, the op's launch waits for nothing and may be part of a recording
// (data_checks.h). Thread-safety: plain values.
#ifndef HOLDFAST_SERVER_EXEC_INTEGER_BOUNDS_H_
#define HOLDFAST_SERVER_EXEC_INTEGER_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/dtype.h"

namespace holdfast {

// Each element is `least`, or `most`, or in [second, before]. The ends have
// places of their own because targets of a loss are often all in range but for
// one value that marks what to ignore. With second > before there are no others
// than the ends; with second == least and before == most nothing is known of
// them.
struct IntegerBounds {
  int64_t least = 0;
  int64_t second = 0;
  int64_t before = 0;
  int64_t most = 0;

  static IntegerBounds Of(int64_t least, int64_t most) {
    return {least, least, most, most};
  }
  bool no_others() const { return second > before || least == most; }
  bool Within(int64_t low, int64_t high) const {
    return least >= low && most <= high;
  }
  // The same of the elements that are not `aside`.
  bool WithinBut(int64_t aside, int64_t low, int64_t high) const {
    const auto fits = [&](int64_t end) {
      return end == aside || (end >= low && end <= high);
    };
    return fits(least) && fits(most) &&
           (no_others() || (second >= low && before <= high));
  }
  // Whether no element is zero.
  bool NonZero() const {
    return least != 0 && most != 0 && (no_others() || second > 0 || before < 0);
  }
};

inline bool operator==(const IntegerBounds& a, const IntegerBounds& b) {
  return a.least == b.least && a.second == b.second && a.before == b.before &&
         a.most == b.most;
}

using KnownBounds = std::optional<IntegerBounds>;

// Of elements that come from either.
IntegerBounds Union(const IntegerBounds& a, const IntegerBounds& b);
// What every element of a narrow type keeps to; nothing of int32 and int64.
KnownBounds BoundsOfType(DType dtype);
// Whether such elements are values of the type.
bool Fit(const IntegerBounds& bounds, DType dtype);
// Of `count` elements in host memory; nothing if they are not int32 or int64,
// or there are none.
KnownBounds BoundsOfElements(DType dtype, const void* data, size_t count);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_INTEGER_BOUNDS_H_
