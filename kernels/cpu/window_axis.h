// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One axis of a sliding window: which taps of a window lie inside the input.
// Sizes and windows come from clients, so that loops must run over the taps
// that exist, never over all of a kernel that may be 2^31 wide.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_WINDOW_AXIS_H_
#define HOLDFAST_KERNELS_CPU_WINDOW_AXIS_H_

#include <algorithm>
#include <cstdint>

namespace holdfast {

struct WindowAxis {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  int64_t size = 1;  // of the input
  int64_t out = 1;   // number of windows

  int64_t Start(int64_t window) const { return window * stride - padding; }
  // Taps [FirstTap, EndTap) of a window are inside the input.
  int64_t FirstTap(int64_t window) const {
    const int64_t start = Start(window);
    return start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  }
  int64_t EndTap(int64_t window) const {
    const int64_t room = size - Start(window);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
  // Windows [FirstWindow, EndWindow) have tap `tap` inside the input.
  int64_t FirstWindow(int64_t tap) const {
    const int64_t missing = padding - tap * dilation;
    return missing <= 0 ? 0 : std::min(out, (missing + stride - 1) / stride);
  }
  int64_t EndWindow(int64_t tap) const {
    const int64_t room = size + padding - tap * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CPU_WINDOW_AXIS_H_
