// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// avg_pool2d and its gradient: a thread per element of the result, which sums
// the window of an element, or what the windows give that have it.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pool_windows.h"

namespace holdfast {
namespace {

// Whether all windows of an axis count the same elements: none hangs over what
// is counted.
bool CountsTheSame(const WindowAxis& a, bool include_pad) {
  const int64_t over = a.Start(a.out - 1) + a.kernel - a.size;
  return include_pad ? over <= a.padding : a.padding == 0 && over <= 0;
}

// PoolDivisor, of windows as they are walked here.
template <typename T>
struct WindowDivisor {
  bool include_pad;
  T same;  // of all windows; 0: they differ

  WindowDivisor(const PoolPlane& p, const PoolDivisor& d)
      : include_pad(d.include_pad), same(static_cast<T>(d.given)) {
    if (d.given == 0 && CountsTheSame(p.h, include_pad) &&
        CountsTheSame(p.w, include_pad)) {
      same = static_cast<T>(p.h.kernel * p.w.kernel);
    }
  }

  template <typename Axis>
  HOLDFAST_HD int64_t Counted(const Axis& axis,
                              typename Axis::Place window) const {
    if (!include_pad) return axis.End(window) - axis.First(window);
    const auto start = axis.Start(window);
    const auto end = start + axis.extent, last = axis.size + axis.padding;
    return (end < last ? end : last) - start;
  }
  template <typename Windows>
  HOLDFAST_HD T Of(const Windows& w, typename Windows::Place i,
                   typename Windows::Place j) const {
    if (same != 0) return same;
    return static_cast<T>(Counted(w.h, i) * Counted(w.w, j));
  }
};

template <typename S, typename Index, int kSide>
struct AvgPool {
  using T = ComputeOf<S>;
  using Place = typename PoolWindows<Index>::Place;

  PoolWindows<Index> windows;
  WindowDivisor<T> divisor;
  const S* in;
  S* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto at = windows.Split(n);
    const S* const image = in + at.plane * windows.in_size;
    T sum = 0;
    const auto take = [&](T element, Place) { sum += element; };
    if constexpr (kSide == 0) {
      windows.ForEachElement(image, at.i, at.j, take);
    } else {
      windows.template ForEachOfSquare<kSide>(image, at.i, at.j, T(0), take);
    }
    out[n] = Convert<S>(sum / divisor.Of(windows, at.i, at.j));
  }
};

// Along an axis without dilation: the windows [First, End) that have a place.
template <typename Index>
struct Covering {
  using Place = typename PoolAxis<Index>::Place;

  Division<Index> size, stride;
  Place kernel, padding, out;

  explicit Covering(const WindowAxis& a)
      : size(a.size),
        stride(a.stride),
        kernel(static_cast<Place>(a.kernel)),
        padding(static_cast<Place>(a.padding)),
        out(static_cast<Place>(a.out)) {}

  HOLDFAST_HD Place First(Place at) const {
    const Place past = at + padding;  // window starts up to here
    return past < kernel ? 0 : Windows(past - kernel);
  }
  HOLDFAST_HD Place End(Place at) const {
    const Place end = Windows(at + padding);
    return end < out ? end : out;
  }
  // Those that start up to a place.
  HOLDFAST_HD Place Windows(Place past) const {
    return static_cast<Place>(stride.Divide(static_cast<Index>(past))) + 1;
  }
};

template <typename S, typename Index>
struct AvgPoolBackward {
  using T = ComputeOf<S>;
  using Place = typename PoolWindows<Index>::Place;

  PoolWindows<Index> windows;
  Covering<Index> rows, columns;
  WindowDivisor<T> divisor;
  const S* grad;
  S* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto column = columns.size.Split(static_cast<Index>(n));
    const auto row = rows.size.Split(column.quotient);
    const Place y = static_cast<Place>(row.rest);
    const Place x = static_cast<Place>(column.rest);
    const int64_t plane = row.quotient;
    const S* const of_plane =
        grad + plane * (int64_t{1} * windows.h.out * windows.w.out);
    const Place i_end = rows.End(y), j_end = columns.End(x);
    const Place j_first = columns.First(x);
    const bool same = divisor.same != 0;
    T sum = 0;
    for (Place i = rows.First(y); i < i_end; ++i) {
      for (Place j = j_first; j < j_end; ++j) {
        const T g = Convert<T>(of_plane[i * windows.w.out + j]);
        sum += same ? g : g / divisor.Of(windows, i, j);
      }
    }
    if (same) sum /= divisor.same;
    out[n] = Convert<S>(sum);
  }
};

}  // namespace

HOLDFAST_CUDA_KERNEL(avg_pool2d) {
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, outputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  const PoolDivisor divisor(attrs);
  return WithPoolFloats(
      context, plane, inputs[0], outputs[0],
      [&](auto stored, auto index, const TensorView& in) -> absl::Status {
        using S = typename decltype(stored)::type;
        using Index = typename decltype(index)::type;
        return DispatchSide<Index>(plane, [&](auto side) -> absl::Status {
          return ForEach(context, outputs[0].spec->numel(),
                         AvgPool<S, Index, side()>{PoolWindows<Index>(plane),
                                                   {plane, divisor},
                                                   in.as<S>(),
                                                   outputs[0].as<S>()});
        });
      });
}

HOLDFAST_CUDA_KERNEL(avg_pool2d_backward) {
  PoolPlane plane = PlaneSizes(outputs[0].spec->shape, inputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  const PoolDivisor divisor(attrs);
  return WithPoolFloats(
      context, plane, inputs[0], outputs[0],
      [&](auto stored, auto index, const TensorView& grad) -> absl::Status {
        using S = typename decltype(stored)::type;
        using Index = typename decltype(index)::type;
        return ForEach(context, outputs[0].spec->numel(),
                       AvgPoolBackward<S, Index>{PoolWindows<Index>(plane),
                                                 Covering<Index>(plane.h),
                                                 Covering<Index>(plane.w),
                                                 {plane, divisor},
                                                 grad.as<S>(),
                                                 outputs[0].as<S>()});
      });
}

}  // namespace holdfast
