// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a position that grid_sample() is given to the elements around it along
// one axis, and their weights, on every device. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_GRID_POSITION_H_
#define HOLDFAST_KERNELS_GRID_POSITION_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "ops/attrs.h"
#include "ops/host_device.h"

namespace holdfast {

inline constexpr int kMaxGridAxes = 3;

enum class GridPadding { kZeros, kBorder, kReflection };

// What grid_taps is asked for.
struct GridPlan {
  int axes = 0;
  int64_t sizes[kMaxGridAxes];  // outermost first, as the input's dimensions
  bool nearest = false, align_corners = false;
  GridPadding padding = GridPadding::kZeros;

  // Combinations of the axes' taps: bit i chooses that of axis i.
  HOLDFAST_HD int corners() const { return nearest ? 1 : 1 << axes; }
};

inline GridPlan ReadGridPlan(const Attrs& attrs) {
  GridPlan g;
  for (int64_t size : attrs.Ints("size")) g.sizes[g.axes++] = size;
  g.nearest = attrs.Str("mode") == "nearest";
  g.align_corners = attrs.Bool("align_corners");
  const std::string& padding = attrs.Str("padding_mode");
  g.padding = padding == "zeros"    ? GridPadding::kZeros
              : padding == "border" ? GridPadding::kBorder
                                    : GridPadding::kReflection;
  return g;
}

// Two taps (one if nearest): where, -1 outside, and how much.
template <typename T>
struct GridTap {
  int64_t at[2];
  T weight[2];
};

template <typename T>
struct GridAxis {
  int64_t size;
  T last, scale, low, high;
  bool zeros, reflects, nearest, align_corners;

  HOLDFAST_HD GridAxis(const GridPlan& g, int axis)
      : size(g.sizes[axis]),
        last(static_cast<T>(size - 1)),
        scale(static_cast<T>((g.align_corners ? size - 1 : size) / 2.0)),
        low(g.align_corners ? T{0} : T{-1}),
        high(static_cast<T>(g.align_corners ? 2 * (size - 1) : 2 * size - 1)),
        zeros(g.padding == GridPadding::kZeros),
        reflects(g.padding == GridPadding::kReflection),
        nearest(g.nearest),
        align_corners(g.align_corners) {}

  // `position`: -1 to 1.
  HOLDFAST_HD GridTap<T> TapsAt(T position) const {
    T x = (position + 1) * scale;
    if (!align_corners) x -= static_cast<T>(0.5);
    if (reflects) x = Reflect(x);
    if (!zeros) x = x < 0 ? T{0} : x > last ? last : x;
    const T begin = nearest ? std::nearbyint(x) : std::floor(x);
    const T part = x - begin;
    return {{Place(begin), Place(begin + 1)},
            {nearest ? T{1} : 1 - part, part}};
  }

 private:
  // x reflected until it lies between low / 2 and high / 2.
  HOLDFAST_HD T Reflect(T x) const {
    const T span = (high - low) / 2;
    if (span <= 0) return x * 0;
    const T away = std::fabs(x - low / 2);
    const T turns = std::floor(away / span);
    const T rest = away - turns * span;
    const T half = turns / 2;
    return (half == std::floor(half) ? rest : span - rest) + low / 2;
  }
  // A whole position as an index. NaN is outside, or anywhere within.
  HOLDFAST_HD int64_t Place(T at) const {
    const bool within = at >= 0 && at <= last;
    const T inside = at >= last ? last : at > 0 ? at : T{0};
    return within || !zeros ? static_cast<int64_t>(inside) : -1;
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_GRID_POSITION_H_
