// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// grid_taps: the elements around each position of grid_sample(), and their
// weights, in the form that weighted_gather takes. Where the grid needs a
// gradient a composite of elementwise ops stands for it
// (python_client/holdfast/nn/functional/sampling.py); keep the two equal.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

constexpr int kMaxAxes = 3;
constexpr int64_t kBlock = 128;  // points at a time

enum class Padding { kZeros, kBorder, kReflection };

struct GridTaps {
  int axes = 0;
  int64_t sizes[kMaxAxes];  // outermost first, as the input's dimensions are
  bool nearest = false, align_corners = false;
  Padding padding = Padding::kZeros;
};

// Two taps along an axis (one if nearest): where, -1 outside, and how much.
template <typename T>
struct AxisTaps {
  int64_t at[2][kBlock];
  T weight[2][kBlock];
};

// x reflected until it lies between low / 2 and high / 2.
template <typename T>
HOLDFAST_INLINE T Reflect(T x, T low, T high) {
  const T span = (high - low) / 2;
  if (span <= 0) return x * 0;
  const T away = std::fabs(x - low / 2);
  const T turns = std::floor(away / span);
  const T rest = away - turns * span;
  const T half = turns / 2;
  return (half == std::floor(half) ? rest : span - rest) + low / 2;
}

// A whole position as an index. NaN is outside, or anywhere within.
template <typename T>
HOLDFAST_INLINE int64_t Place(T at, int64_t size, bool zeros) {
  const T last = static_cast<T>(size - 1);
  const bool within = at >= 0 && at <= last;
  const T inside = at >= last ? last : at > 0 ? at : T{0};
  return within || !zeros ? static_cast<int64_t>(inside) : -1;
}

template <typename T>
struct AxisBody {
  static HOLDFAST_INLINE int Run(const T* grid, int64_t n, const GridTaps* g,
                                 int axis, AxisTaps<T>* taps) {
    const int64_t size = g->sizes[axis];
    const T last = static_cast<T>(size - 1);
    const T scale = static_cast<T>((g->align_corners ? size - 1 : size) / 2.0);
    const bool zeros = g->padding == Padding::kZeros;
    const T low = g->align_corners ? 0 : -1;
    const T high =
        static_cast<T>(g->align_corners ? 2 * (size - 1) : 2 * size - 1);
    for (int64_t j = 0; j < n; ++j) {
      // The last axis comes first in the grid.
      T x = (grid[j * g->axes + (g->axes - 1 - axis)] + 1) * scale;
      if (!g->align_corners) x -= static_cast<T>(0.5);
      if (g->padding == Padding::kReflection) x = Reflect(x, low, high);
      if (!zeros) x = x < 0 ? T{0} : x > last ? last : x;
      const T begin = g->nearest ? std::nearbyint(x) : std::floor(x);
      const T part = x - begin;
      taps->at[0][j] = Place(begin, size, zeros);
      taps->at[1][j] = Place(begin + 1, size, zeros);
      taps->weight[0][j] = g->nearest ? T{1} : 1 - part;
      taps->weight[1][j] = part;
    }
    return 0;
  }
};

// Combination k of the axes' taps: bit i chooses the tap of axis i.
template <typename T>
struct CornerBody {
  static HOLDFAST_INLINE int Run(const AxisTaps<T>* taps, const GridTaps* g,
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

GridTaps ReadAttrs(const Attrs& attrs) {
  GridTaps g;
  for (int64_t size : attrs.Ints("size")) g.sizes[g.axes++] = size;
  g.nearest = attrs.Str("mode") == "nearest";
  g.align_corners = attrs.Bool("align_corners");
  const std::string& padding = attrs.Str("padding_mode");
  g.padding = padding == "zeros"    ? Padding::kZeros
              : padding == "border" ? Padding::kBorder
                                    : Padding::kReflection;
  return g;
}

template <typename T>
void Fill(KernelContext& context, const GridTaps& g, const T* grid, int64_t n,
          int64_t points, int64_t* index, T* weight) {
  const int corners = g.nearest ? 1 : 1 << g.axes;
  const int64_t blocks = (points + kBlock - 1) / kBlock;
  ParallelFor(context, n * blocks, 16, [&](int64_t begin, int64_t end) {
    AxisTaps<T> taps[kMaxAxes];
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
  const GridTaps g = ReadAttrs(attrs);
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

}  // namespace holdfast
