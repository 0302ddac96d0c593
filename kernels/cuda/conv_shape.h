// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a convolution is of. Thread-safety: plain values.
#ifndef HOLDFAST_KERNELS_CUDA_CONV_SHAPE_H_
#define HOLDFAST_KERNELS_CUDA_CONV_SHAPE_H_

#include <cstdint>

#include "kernels/cuda/windows.h"

namespace holdfast::cuda {

struct ConvShape {
  int axes = 2;  // 2 or 3: the last ones of `windows`
  int64_t samples = 1, in_channels = 1, out_channels = 1, groups = 1;
  Windows windows;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
};

// Which of the three tensors is computed from the other two.
enum class ConvPass { kForward, kBackwardInput, kBackwardWeight };

// Contiguous tensors: x [samples, in channels, sizes...], w [out channels,
// in channels of a group, kernel...], y [samples, out channels, windows...].
struct ConvTensors {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CONV_SHAPE_H_
