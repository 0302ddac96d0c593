// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ResampleAxis: a linear map along one axis in which every output sums a window
// of neighbouring inputs, each with a weight: interpolation, averaging, and the
// adjoints of both.
// Thread-safety: plain values; the functions are reentrant.
#ifndef HOLDFAST_KERNELS_RESAMPLE_AXIS_H_
#define HOLDFAST_KERNELS_RESAMPLE_AXIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ops/attrs.h"

namespace holdfast {

// Outputs [begin, end) that sum `taps` inputs each.
struct ResampleRun {
  int64_t begin, end, taps;
};

// Output i is the sum over k < taps(i) of weight[offset[i] + k] *
// input[first[i] + k]. Neither the windows' starts nor their ends ever move
// back. The functions of i are for what is not the identity.
template <typename T>
struct ResampleAxis {
  std::vector<int32_t> first;
  std::vector<int64_t> offset = {0};  // one more than outputs
  std::vector<T> weight;
  std::vector<ResampleRun> runs;
  int64_t max_taps = 0;
  int64_t identity = 0;  // > 0: output i is input i, so many; no tables

  int64_t size() const {
    return identity > 0 ? identity : static_cast<int64_t>(first.size());
  }
  int64_t taps(int64_t i) const { return offset[i + 1] - offset[i]; }
  int64_t end(int64_t i) const { return first[i] + taps(i); }
};

// The map of resample2d's `mode` from `in` to `out` elements; `scale`: that of
// the attributes, 0 for the ratio of the sizes. REQUIRES: what inference
// checks.
template <typename T>
ResampleAxis<T> MakeResampleAxis(const std::string& mode, int64_t in,
                                 int64_t out, bool align_corners, double scale);

// The adjoint: from axis.size() to `in` elements.
template <typename T>
ResampleAxis<T> Transposed(const ResampleAxis<T>& axis, int64_t in);

// Axis i of 2 of resample2d, or of its adjoint, from `from` to `to` elements.
template <typename T>
ResampleAxis<T> ResampleAxisOf(const Attrs& attrs, int i, int64_t from,
                               int64_t to, bool adjoint) {
  const ResampleAxis<T> axis = MakeResampleAxis<T>(
      attrs.Str("mode"), adjoint ? to : from, adjoint ? from : to,
      attrs.Bool("align_corners"), attrs.Float(i == 0 ? "scale_h" : "scale_w"));
  return adjoint ? Transposed(axis, to) : axis;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_RESAMPLE_AXIS_H_
