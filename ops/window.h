// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the last two or three dimensions of a tensor: what
// convolution and pooling have in common.
// Thread-safety: pure functions.
#ifndef HOLDFAST_OPS_WINDOW_H_
#define HOLDFAST_OPS_WINDOW_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"

namespace holdfast {

// (depth,) height, width: as many as the op has, the rest unread.
using WindowInts = std::array<int64_t, 3>;

struct Window {
  WindowInts kernel = {1, 1, 1};
  WindowInts stride = {1, 1, 1};
  WindowInts padding = {0, 0, 0};
  WindowInts dilation = {1, 1, 1};
  bool ceil_mode = false;  // a last window may hang over the far edge
};

// No field is larger: kernels and oneDNN compute with them in 32 bits.
inline constexpr int64_t kMaxWindowField = (int64_t{1} << 31) - 1;

// Number of window positions along `axis` of an input of `size`;
// 0 or less when none fits. REQUIRES: fields within kMaxWindowField, kernel,
// stride and dilation positive, padding and size not negative.
int64_t WindowCount(const Window& window, int axis, int64_t size);

// PyTorch's limit on the padding of a pool, which keeps windows near real
// elements.
bool PaddingIsAtMostHalf(const Window& window, int axis);

}  // namespace holdfast

#endif  // HOLDFAST_OPS_WINDOW_H_
