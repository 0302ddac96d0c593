// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Positions are computed in the element's type and in PyTorch's order of
// operations, so that rounding picks the same neighbours.
#include "kernels/resample_axis.h"

#include <algorithm>
#include <cmath>

namespace holdfast {
namespace {

// Adds one output's window; `weights` of equal inputs at an edge are summed.
template <typename T>
void AddWindow(ResampleAxis<T>* axis, int64_t first, const T* weights,
               int64_t taps) {
  axis->first.push_back(static_cast<int32_t>(first));
  axis->weight.insert(axis->weight.end(), weights, weights + taps);
  axis->offset.push_back(static_cast<int64_t>(axis->weight.size()));
}

// A window that may hang over the edges: what is outside counts as the edge.
template <typename T>
void AddClamped(ResampleAxis<T>* axis, int64_t in, int64_t first,
                const T* weights, int64_t taps) {
  const int64_t low = std::clamp<int64_t>(first, 0, in - 1);
  const int64_t high = std::clamp<int64_t>(first + taps - 1, 0, in - 1);
  T sums[4] = {};
  for (int64_t k = 0; k < taps; ++k) {
    sums[std::clamp<int64_t>(first + k, low, high) - low] += weights[k];
  }
  AddWindow(axis, low, sums, high - low + 1);
}

template <typename T>
void Finish(ResampleAxis<T>* axis) {
  for (int64_t i = 0; i < axis->size(); ++i) {
    const int64_t taps = axis->taps(i);
    axis->max_taps = std::max(axis->max_taps, taps);
    if (axis->runs.empty() || axis->runs.back().taps != taps) {
      axis->runs.push_back({i, i, taps});
    }
    axis->runs.back().end = i + 1;
  }
}

template <typename T>
T StepOf(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? T(in - 1) / T(out - 1) : T(0);
  return scale > 0 ? static_cast<T>(1.0 / scale) : T(in) / T(out);
}

// Cubic convolution (Keys 1981) at distances 0..1 and 1..2.
template <typename T>
T CubicNear(T x, T a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <typename T>
T CubicFar(T x, T a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// Not outside [0, limit], NaN included.
template <typename T>
int64_t ToIndex(T x, int64_t limit) {
  if (!(x > 0)) return 0;
  return x >= static_cast<T>(limit) ? limit : static_cast<int64_t>(x);
}

template <typename T>
void AddNearest(ResampleAxis<T>* axis, int64_t in, int64_t out, bool exact,
                double scale) {
  // PyTorch computes these in float whatever the elements are.
  const float step = StepOf<float>(in, out, false, scale);
  const T one = 1;
  for (int64_t i = 0; i < out; ++i) {
    const float at = exact ? (i + 0.5f) * step : i * step;
    AddWindow(axis, ToIndex(at, in - 1), &one, 1);
  }
}

template <typename T>
void AddLinear(ResampleAxis<T>* axis, int64_t in, int64_t out,
               bool align_corners, double scale) {
  const T step = StepOf<T>(in, out, align_corners, scale);
  for (int64_t i = 0; i < out; ++i) {
    T at = align_corners ? step * i : step * (i + T(0.5)) - T(0.5);
    if (!(at > 0)) at = 0;
    const int64_t low = ToIndex(at, in - 1);
    const T rest = std::clamp<T>(at - T(low), 0, 1);
    const T weights[2] = {T(1) - rest, rest};
    // Elements that do not count are not read: they may be infinite.
    AddClamped(axis, in, low, weights, rest == 0 ? 1 : 2);
  }
}

template <typename T>
void AddCubic(ResampleAxis<T>* axis, int64_t in, int64_t out,
              bool align_corners, double scale) {
  const T step = StepOf<T>(in, out, align_corners, scale);
  const T a = T(-0.75);
  for (int64_t i = 0; i < out; ++i) {
    T at = align_corners ? step * i : step * (i + T(0.5)) - T(0.5);
    at = std::clamp<T>(at, -4, T(in) + 4);
    const T floor = std::floor(at);
    const T x = at - floor;
    const T weights[4] = {CubicFar<T>(x + 1, a), CubicNear<T>(x, a),
                          CubicNear<T>(1 - x, a), CubicFar<T>(2 - x, a)};
    AddClamped(axis, in, static_cast<int64_t>(floor) - 1, weights, 4);
  }
}

template <typename T>
void AddArea(ResampleAxis<T>* axis, int64_t in, int64_t out) {
  std::vector<T> weights;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * in / out;
    const int64_t end = ((i + 1) * in + out - 1) / out;
    weights.assign(end - first, T(1) / T(end - first));
    AddWindow(axis, first, weights.data(), end - first);
  }
}

// The filter is stretched over the inputs that shrink into one output.
template <typename T>
void AddAntialias(ResampleAxis<T>* axis, int64_t in, int64_t out, bool cubic,
                  bool align_corners, double scale) {
  const T step = StepOf<T>(in, out, align_corners, scale);
  // A scale far from the sizes' ratio must not make windows of everything.
  const T stretch = std::clamp<T>(step, 1, T(2 + 2 * in / out));
  const T support = (cubic ? 2 : 1) * stretch;
  std::vector<T> weights;
  for (int64_t i = 0; i < out; ++i) {
    const T centre = step * (i + T(0.5));
    const int64_t first =
        std::min(in - 1, ToIndex(centre - support + T(0.5), in));
    const int64_t end =
        std::max(first + 1, ToIndex(centre + support + T(0.5), in));
    weights.clear();
    T total = 0;
    for (int64_t j = first; j < end; ++j) {
      const T x = std::fabs((T(j) - centre + T(0.5)) / stretch);
      T weight = std::max<T>(0, 1 - x);
      if (cubic) {
        weight = x < 1   ? CubicNear<T>(x, T(-0.5))
                 : x < 2 ? CubicFar<T>(x, T(-0.5))
                         : T(0);
      }
      weights.push_back(weight);
      total += weight;
    }
    for (T& weight : weights) {
      weight = total != 0 ? weight / total : T(1) / T(end - first);
    }
    AddWindow(axis, first, weights.data(), end - first);
  }
}

}  // namespace

template <typename T>
ResampleAxis<T> MakeResampleAxis(const std::string& mode, int64_t in,
                                 int64_t out, bool align_corners,
                                 double scale) {
  ResampleAxis<T> axis;
  if (in == out && (scale == 0 || scale == 1)) {
    axis.identity = in;  // in every mode
    return axis;
  }
  axis.first.reserve(out);
  axis.offset.reserve(out + 1);
  if (mode == "nearest" || mode == "nearest-exact") {
    AddNearest(&axis, in, out, mode == "nearest-exact", scale);
  } else if (mode == "area") {
    AddArea(&axis, in, out);
  } else if (mode == "linear") {
    AddLinear(&axis, in, out, align_corners, scale);
  } else if (mode == "cubic") {
    AddCubic(&axis, in, out, align_corners, scale);
  } else {
    AddAntialias(&axis, in, out, mode == "cubic-antialias", align_corners,
                 scale);
  }
  Finish(&axis);
  return axis;
}

template <typename T>
ResampleAxis<T> Transposed(const ResampleAxis<T>& axis, int64_t in) {
  if (axis.identity > 0) return axis;
  ResampleAxis<T> adjoint;
  adjoint.first.reserve(in);
  adjoint.offset.reserve(in + 1);
  adjoint.weight.reserve(axis.weight.size());
  const int64_t size = axis.size();
  int64_t begin = 0, end = 0;  // the outputs that read input r
  for (int64_t r = 0; r < in; ++r) {
    while (begin < size && axis.end(begin) <= r) ++begin;
    end = std::max(begin, end);
    while (end < size && axis.first[end] <= r) ++end;
    for (int64_t i = begin; i < end; ++i) {
      adjoint.weight.push_back(axis.weight[axis.offset[i] + r - axis.first[i]]);
    }
    adjoint.first.push_back(static_cast<int32_t>(begin));
    adjoint.offset.push_back(static_cast<int64_t>(adjoint.weight.size()));
  }
  Finish(&adjoint);
  return adjoint;
}

template ResampleAxis<float> MakeResampleAxis(const std::string&, int64_t,
                                              int64_t, bool, double);
template ResampleAxis<double> MakeResampleAxis(const std::string&, int64_t,
                                               int64_t, bool, double);
template ResampleAxis<float> Transposed(const ResampleAxis<float>&, int64_t);
template ResampleAxis<double> Transposed(const ResampleAxis<double>&, int64_t);

}  // namespace holdfast
