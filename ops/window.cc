// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

namespace holdfast {
namespace {

// Elements from the first to the last one that a kernel touches.
__int128 Extent(const Window& window, int axis) {
  return static_cast<__int128>(window.kernel[axis] - 1) *
             window.dilation[axis] +
         1;
}

}  // namespace

int64_t WindowCount(const Window& window, int axis, int64_t size) {
  const int64_t stride = window.stride[axis];
  const int64_t padding = window.padding[axis];
  const __int128 slack =
      static_cast<__int128>(size) + 2 * padding - Extent(window, axis);
  const __int128 rounded = slack + (window.ceil_mode ? stride - 1 : 0);
  if (rounded < 0) return 0;
  __int128 count = rounded / stride + 1;
  // The last window must start inside the input or its left padding.
  if (window.ceil_mode && (count - 1) * stride >= size + padding) --count;
  return static_cast<int64_t>(count);
}

bool PaddingIsAtMostHalf(const Window& window, int axis) {
  return window.padding[axis] <= window.kernel[axis] / 2;
}

}  // namespace holdfast
