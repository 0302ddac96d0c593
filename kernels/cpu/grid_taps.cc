// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// grid_taps: the elements around each position of grid_sample(), and their
// weights, in the form that weighted_gather takes. Where the grid needs a
// gradient a composite of elementwise ops stands for it
// (python_client/holdfast/nn/functional/sampling.py); keep the two equal.
#include <algorithm>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/grid_position.h"

namespace holdfast::cpu {
namespace {

constexpr int64_t kBlock = 128;  // points at a time

// Two taps along an axis (one if nearest): where, -1 outside, and how much.
template <typename T>
struct AxisTaps {
  int64_t at[2][kBlock];
  T weight[2][kBlock];
};

template <typename T>
struct AxisBody {
  static HOLDFAST_INLINE int Run(const T* grid, int64_t n, const GridPlan* g,
                                 int axis, AxisTaps<T>* taps) {
    const GridAxis<T> along(*g, axis);
    for (int64_t j = 0; j < n; ++j) {
      // The last axis comes first in the grid.
      const GridTap<T> tap =
          along.TapsAt(grid[j * g->axes + (g->axes - 1 - axis)]);
      taps->at[0][j] = tap.at[0];
      taps->at[1][j] = tap.at[1];
      taps->weight[0][j] = tap.weight[0];
      taps->weight[1][j] = tap.weight[1];
    }
    return 0;
  }
};

// Combination k of the axes' taps: bit i chooses the tap of axis i.
template <typename T>
struct CornerBody {
  static HOLDFAST_INLINE int Run(const AxisTaps<T>* taps, const GridPlan* g,
                                 int k, int64_t n, int64_t* index, T* weight) {
    const AxisTaps<T>& first = taps[0];
    for (int64_t j = 0; j < n; ++j) {
      index[j] = first.at[k & 1][j];
      weight[j] = first.weight[k & 1][j];
    }
    for (int axis = 1; axis < g->axes; ++axis) {
      const int64_t* at = taps[axis].at[k >> axis & 1];
      const T* w = taps[axis].weight[k >> axis & 1];
      const int64_t size = g->sizes[axis];
      for (int64_t j = 0; j < n; ++j) {
        const bool within = (index[j] | at[j]) >= 0;
        index[j] = within ? index[j] * size + at[j] : -1;
        weight[j] *= w[j];
      }
    }
    return 0;
  }
};

template <typename T>
void Fill(KernelContext& context, const GridPlan& g, const T* grid, int64_t n,
          int64_t points, int64_t* index, T* weight) {
  const int corners = g.corners();
  const int64_t blocks = (points + kBlock - 1) / kBlock;
  ParallelFor(context, n * blocks, 16, [&](int64_t begin, int64_t end) {
    AxisTaps<T> taps[kMaxGridAxes];
    for (int64_t b = begin; b < end; ++b) {
      const int64_t image = b / blocks, first = b % blocks * kBlock;
      const int64_t count = std::min(kBlock, points - first);
      for (int axis = 0; axis < g.axes; ++axis) {
        Vectorised<AxisBody<T>>(grid + (image * points + first) * g.axes, count,
                                &g, axis, taps + axis);
      }
      for (int k = 0; k < corners; ++k) {
        const int64_t to = (image * corners + k) * points + first;
        Vectorised<CornerBody<T>>(static_cast<const AxisTaps<T>*>(taps), &g, k,
                                  count, index + to, weight + to);
      }
    }
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(grid_taps) {
  const GridPlan g = ReadGridPlan(attrs);
  TensorSpec spec;
  TensorView grid;
  absl::Status s =
      MakeContiguous(context, inputs[0], inputs[0].spec->dtype, &spec, &grid);
  if (!s.ok()) return s;
  const Dims& shape = inputs[0].spec->shape;
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    Fill<T>(context, g, grid.as<T>(), shape[0], shape[1],
            outputs[0].as<int64_t>(), outputs[1].as<T>());
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
