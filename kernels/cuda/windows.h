// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the planes of a tensor, along up to three axes: what
// convolution and unfolding have in common.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_WINDOWS_H_
#define HOLDFAST_KERNELS_CUDA_WINDOWS_H_

#include <cstdint>

#include "kernels/window_axis.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

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

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_WINDOWS_H_
