// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the planes of a tensor, along up to three axes: what
// convolution, pooling and unfolding have in common.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_WINDOWS_H_
#define HOLDFAST_KERNELS_CUDA_WINDOWS_H_

#include <cstdint>

#include "ops/host_device.h"

namespace holdfast {

struct WindowAxis {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  int64_t size = 1;  // of the input
  int64_t out = 1;   // number of windows

  HOLDFAST_HD int64_t Start(int64_t window) const {
    return window * stride - padding;
  }
  // Where a tap of a window is; outside the input if not in [0, size).
  HOLDFAST_HD int64_t At(int64_t window, int64_t tap) const {
    return Start(window) + tap * dilation;
  }
  HOLDFAST_HD bool Inside(int64_t at) const {
    return static_cast<uint64_t>(at) < static_cast<uint64_t>(size);
  }
  // The window whose tap `tap` is at `at`, or -1.
  HOLDFAST_HD int64_t WindowOf(int64_t at, int64_t tap) const {
    const int64_t from = at + padding - tap * dilation;
    if (from < 0 || from % stride != 0) return -1;
    const int64_t window = from / stride;
    return window < out ? window : -1;
  }
};

struct Windows {
  WindowAxis axis[3];  // depth, height, width; unused ones are of size 1

  HOLDFAST_HD int64_t plane() const {
    return axis[0].size * axis[1].size * axis[2].size;
  }
  HOLDFAST_HD int64_t columns() const {
    return axis[0].out * axis[1].out * axis[2].out;
  }
  HOLDFAST_HD int64_t taps() const {
    return axis[0].kernel * axis[1].kernel * axis[2].kernel;
  }
  // The place in the plane of a tap of a window; -1: outside.
  HOLDFAST_HD int64_t PlaceOf(int64_t column, int64_t tap) const {
    const int64_t x = axis[2].At(column % axis[2].out, tap % axis[2].kernel);
    column /= axis[2].out;
    tap /= axis[2].kernel;
    const int64_t y = axis[1].At(column % axis[1].out, tap % axis[1].kernel);
    const int64_t z = axis[0].At(column / axis[1].out, tap / axis[1].kernel);
    if (!axis[0].Inside(z) || !axis[1].Inside(y) || !axis[2].Inside(x)) {
      return -1;
    }
    return (z * axis[1].size + y) * axis[2].size + x;
  }
  // The window that has a place at a tap; -1: none.
  HOLDFAST_HD int64_t ColumnOf(int64_t place, int64_t tap) const {
    const int64_t x =
        axis[2].WindowOf(place % axis[2].size, tap % axis[2].kernel);
    place /= axis[2].size;
    tap /= axis[2].kernel;
    const int64_t y =
        axis[1].WindowOf(place % axis[1].size, tap % axis[1].kernel);
    const int64_t z =
        axis[0].WindowOf(place / axis[1].size, tap / axis[1].kernel);
    if (x < 0 || y < 0 || z < 0) return -1;
    return (z * axis[1].out + y) * axis[2].out + x;
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_WINDOWS_H_
