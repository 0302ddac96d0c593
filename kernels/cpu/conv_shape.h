// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ConvShape: one convolution in numbers, whichever of its three ops asks, and
// the kernels that oneDNN does not have (float64, odd windows).
// Thread-safety: plain value; the functions are reentrant.
#ifndef HOLDFAST_KERNELS_CPU_CONV_SHAPE_H_
#define HOLDFAST_KERNELS_CPU_CONV_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/window_axis.h"
#include "ops/attrs.h"

namespace holdfast::cpu {

// input [n, in_channels, d.size, h.size, w.size], weight [out_channels,
// in_channels / groups, d.kernel, h.kernel, w.kernel], output [n, out_channels,
// d.out, h.out, w.out]; all contiguous. Two axes: d is all ones.
struct ConvShape {
  int64_t n = 1, in_channels = 1, out_channels = 1, groups = 1;
  int axes = 2;
  WindowAxis d, h, w;

  // Elements of one channel.
  int64_t in_plane() const { return d.size * h.size * w.size; }
  int64_t out_plane() const { return d.out * h.out * w.out; }
  int64_t kernel() const { return d.kernel * h.kernel * w.kernel; }
  // Of one group.
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t taps() const { return group_in() * kernel(); }
};

// Shapes may lack the batch dimension.
ConvShape MakeConvShape(const Attrs& attrs, absl::Span<const int64_t> input,
                        absl::Span<const int64_t> weight,
                        absl::Span<const int64_t> output);

// The three ops by unfolding windows into columns and multiplying. T is float
// or double. `bias` may be null.
template <typename T>
absl::Status UnfoldedConv(KernelContext& context, const ConvShape& shape,
                          const T* input, const T* weight, const T* bias,
                          T* output);
template <typename T>
absl::Status UnfoldedConvBackwardInput(KernelContext& context,
                                       const ConvShape& shape, const T* grad,
                                       const T* weight, T* grad_input);
template <typename T>
absl::Status UnfoldedConvBackwardWeight(KernelContext& context,
                                        const ConvShape& shape, const T* grad,
                                        const T* input, T* grad_weight);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_CONV_SHAPE_H_
