// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pooling kernels share: a call's geometry, read from its attributes
// and shapes.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_POOL_PLANE_H_
#define HOLDFAST_KERNELS_POOL_PLANE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/window_axis.h"
#include "ops/attrs.h"
#include "ops/host_device.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// `planes` images of one channel each.
struct PoolPlane {
  int64_t planes = 1;
  WindowAxis h, w;

  HOLDFAST_HD int64_t in_size() const { return h.size * w.size; }
  HOLDFAST_HD int64_t out_size() const { return h.out * w.out; }
};

// Shapes [N,C,H,W] or [C,H,W]; only the sizes are filled in.
inline PoolPlane PlaneSizes(absl::Span<const int64_t> in,
                            absl::Span<const int64_t> out) {
  PoolPlane plane;
  const size_t rank = in.size();
  for (size_t d = 0; d + 2 < rank; ++d) plane.planes *= in[d];
  plane.h.size = in[rank - 2];
  plane.w.size = in[rank - 1];
  plane.h.out = out[rank - 2];
  plane.w.out = out[rank - 1];
  return plane;
}

inline void ReadWindow(const Attrs& attrs, bool dilated, PoolPlane* plane) {
  const Dims& kernel = attrs.Ints("kernel_size");
  const Dims& stride = attrs.None("stride") ? kernel : attrs.Ints("stride");
  const Dims& padding = attrs.Ints("padding");
  WindowAxis* axes[2] = {&plane->h, &plane->w};
  for (int i = 0; i < 2; ++i) {
    axes[i]->kernel = kernel[i];
    axes[i]->stride = stride[i];
    axes[i]->padding = padding[i];
    if (dilated) axes[i]->dilation = attrs.Ints("dilation")[i];
  }
}

// What a window's sum is divided by for avg_pool2d: the product of what it
// counts along both axes, or a given number.
struct PoolDivisor {
  bool include_pad;
  int64_t given;  // 0: none

  explicit PoolDivisor(const Attrs& attrs)
      : include_pad(attrs.Bool("count_include_pad")),
        given(attrs.None("divisor_override") ? 0
                                             : attrs.Int("divisor_override")) {}

  // Elements that a window counts along one axis. With padding, a window that
  // hangs over the far edge (ceil_mode) counts up to the padding's end.
  HOLDFAST_HD int64_t Counted(const WindowAxis& axis, int64_t window) const {
    if (!include_pad) return axis.EndTap(window) - axis.FirstTap(window);
    const int64_t start = axis.Start(window), end = start + axis.kernel;
    const int64_t last = axis.size + axis.padding;
    return (end < last ? end : last) - start;
  }
  HOLDFAST_HD int64_t Of(const PoolPlane& p, int64_t i, int64_t j) const {
    return given != 0 ? given : Counted(p.h, i) * Counted(p.w, j);
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_POOL_PLANE_H_
