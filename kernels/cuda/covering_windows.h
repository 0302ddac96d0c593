// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The windows of pooling without dilation that have a given place of the input:
// what a gradient of the input sums over.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_COVERING_WINDOWS_H_
#define HOLDFAST_KERNELS_CUDA_COVERING_WINDOWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/index_division.h"
#include "kernels/cuda/pool_windows.h"
#include "kernels/window_axis.h"

namespace holdfast::cuda {

// Windows of an axis that a place may be in.
inline int64_t MostCovering(const WindowAxis& a) {
  return std::min(a.out, (a.kernel - 1) / a.stride + 1);
}

template <typename Index>
struct Covering {
  using Place = typename PoolAxis<Index>::Place;

  Division<Index> by_stride;
  Place stride, kernel, padding, out;

  explicit Covering(const WindowAxis& a)
      : by_stride(a.stride),
        stride(static_cast<Place>(a.stride)),
        kernel(static_cast<Place>(a.kernel)),
        padding(static_cast<Place>(a.padding)),
        out(static_cast<Place>(a.out)) {}

  // A window, if Has, and which of its taps the place is.
  struct At {
    Place window, tap;
  };
  // Of the last window that begins up to the place.
  HOLDFAST_HD At Last(Place place) const {
    const Place past = place + padding;
    const auto begun =
        static_cast<Place>(by_stride.Divide(static_cast<Index>(past)));
    const Place window = begun < out ? begun : out - 1;
    return {window, past - window * stride};
  }
  HOLDFAST_HD At Before(At at, int windows) const {
    return {at.window - windows, at.tap + windows * stride};
  }
  HOLDFAST_HD bool Has(At at) const {
    return at.window >= 0 && at.tap < kernel;
  }
  // The windows [First, End) that have a place, of any number.
  HOLDFAST_HD Place First(Place place) const {
    const Place past = place + padding - kernel;
    if (past < 0) return 0;
    return static_cast<Place>(by_stride.Divide(static_cast<Index>(past))) + 1;
  }
  HOLDFAST_HD Place End(Place place) const { return Last(place).window + 1; }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_COVERING_WINDOWS_H_
