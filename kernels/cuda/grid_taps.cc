// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// grid_taps: the elements around each position of grid_sample(), and their
// weights. A thread per position.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/grid_position.h"

namespace holdfast::cuda {
namespace {

template <typename T>
struct Taps {
  GridPlan plan;
  int64_t points;  // of an image
  const T* grid;
  int64_t* index;
  T* weight;

  HOLDFAST_HD void operator()(int64_t i) const {
    const T* const position = grid + i * plan.axes;
    GridTap<T> taps[kMaxGridAxes];
    for (int axis = 0; axis < plan.axes; ++axis) {
      // The last axis comes first in the grid.
      taps[axis] =
          GridAxis<T>(plan, axis).TapsAt(position[plan.axes - 1 - axis]);
    }
    const int64_t image = i / points, point = i % points;
    for (int k = 0; k < plan.corners(); ++k) {
      int64_t at = 0;
      T product = 1;
      for (int axis = 0; axis < plan.axes; ++axis) {
        const int which = k >> axis & 1;
        const bool within = (at | taps[axis].at[which]) >= 0;
        at = within ? at * plan.sizes[axis] + taps[axis].at[which] : -1;
        product *= taps[axis].weight[which];
      }
      const int64_t to = (image * plan.corners() + k) * points + point;
      index[to] = at;
      weight[to] = product;
    }
  }
};

}  // namespace

HOLDFAST_CUDA_KERNEL(grid_taps) {
  const GridPlan plan = ReadGridPlan(attrs);
  const Dims& shape = inputs[0].spec->shape;
  ContiguousOperands<1> in;
  absl::Status s = in.MakeOne(context, 0, inputs[0], inputs[0].spec->dtype);
  if (!s.ok()) return s;
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ForEach(context, shape[0] * shape[1],
                   Taps<T>{plan, shape[1], in.as<T>(0),
                           outputs[0].as<int64_t>(), outputs[1].as<T>()});
  });
}

}  // namespace holdfast::cuda
