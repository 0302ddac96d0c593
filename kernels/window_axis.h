// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One axis of a sliding window: which taps of a window lie inside the input.
// Sizes and windows come from clients, so that loops must run over the taps
// that exist, never over all of a kernel that may be 2^31 wide.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_WINDOW_AXIS_H_
#define HOLDFAST_KERNELS_WINDOW_AXIS_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/host_device.h"

namespace holdfast {

struct WindowAxis {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  int64_t size = 1;  // of the input
  int64_t out = 1;   // number of windows

  HOLDFAST_HD int64_t Start(int64_t window) const {
    return window * stride - padding;
  }
  // Taps [FirstTap, EndTap) of a window are inside the input.
  HOLDFAST_HD int64_t FirstTap(int64_t window) const {
    const int64_t start = Start(window);
    return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  }
  HOLDFAST_HD int64_t EndTap(int64_t window) const {
    const int64_t room = size - Start(window);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
  // Windows [FirstWindow, EndWindow) have tap `tap` inside the input.
  HOLDFAST_HD int64_t FirstWindow(int64_t tap) const {
    const int64_t missing = padding - tap * dilation;
    return missing <= 0 ? 0 : std::min(out, (missing + stride - 1) / stride);
  }
  HOLDFAST_HD int64_t EndWindow(int64_t tap) const {
    const int64_t room = size + padding - tap * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
  // Where a tap of a window is; outside the input if not Inside.
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

// Axis i of 2 as im2col and col2im of images [N,C,H,W] have it.
inline WindowAxis UnfoldAxis(const Attrs& attrs,
                             absl::Span<const int64_t> image, int i) {
  WindowAxis axis;
  axis.kernel = attrs.Ints("kernel_size")[i];
  axis.stride = attrs.Ints("stride")[i];
  axis.padding = attrs.Ints("padding")[i];
  axis.dilation = attrs.Ints("dilation")[i];
  axis.size = image[2 + i];
  axis.out =
      (axis.size + 2 * axis.padding - (axis.kernel - 1) * axis.dilation - 1) /
          axis.stride +
      1;
  return axis;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_WINDOW_AXIS_H_
