// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// avg_pool2d and its gradient: a thread per element of the result, which sums
// the window of an element; a thread for some neighbours in a row, which sums
// what the windows give that have them.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/covering_windows.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packs.h"
#include "kernels/cuda/pool_windows.h"

namespace holdfast::cuda {
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
  HOLDFAST_HD typename Axis::Place Counted(const Axis& axis,
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
    return static_cast<T>(int64_t{1} * Counted(w.h, i) * Counted(w.w, j));
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

// Places of a plane, and what windows over it give them.
template <typename S, typename Index>
struct AvgPoolGradient {
  using T = ComputeOf<S>;
  using Place = typename PoolWindows<Index>::Place;

  PoolWindows<Index> windows;
  Covering<Index> rows, columns;
  WindowDivisor<T> divisor;
  Division<Index> by_height, by_packs;  // a row's
  int64_t out_size;
  const S* grad;
  S* out;

  AvgPoolGradient(const PoolPlane& p, const PoolDivisor& d, int width,
                  const S* from, S* to)
      : windows(p),
        rows(p.h),
        columns(p.w),
        divisor(p, d),
        by_height(p.h.size),
        by_packs(p.w.size / width),
        out_size(p.out_size()),
        grad(from),
        out(to) {}

  struct At {
    const S* grad;  // of the plane's windows
    Place y, x;     // x: in packs
  };
  HOLDFAST_HD At Split(int64_t pack) const {
    const auto column = by_packs.Split(static_cast<Index>(pack));
    const auto row = by_height.Split(column.quotient);
    return {grad + static_cast<int64_t>(row.quotient) * out_size,
            static_cast<Place>(row.rest), static_cast<Place>(column.rest)};
  }
};

// Places that kMost windows of an axis have at the most, kWidth of them beside
// each other by a thread. kSame: one divisor is all windows'.
template <typename S, int kMost, int kWidth, bool kSame>
struct SumFewWindows {
  using T = ComputeOf<S>;
  using Place = int32_t;
  using Cover = Covering<uint32_t>;

  AvgPoolGradient<S, uint32_t> of;

  HOLDFAST_HD void operator()(int64_t pack) const {
    const auto at = of.Split(pack);
    const auto last_row = of.rows.Last(at.y);
    T g[kWidth][kMost][kMost];
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      const auto last = of.columns.Last(at.x * kWidth + e);
      HOLDFAST_UNROLL
      for (int a = 0; a < kMost; ++a) {
        const auto row = of.rows.Before(last_row, a);
        const Place from = row.window * of.windows.w.out + last.window;
        const bool has_row = of.rows.Has(row);
        HOLDFAST_UNROLL
        for (int b = 0; b < kMost; ++b) {
          g[e][a][b] = 0;
          if (has_row && of.columns.Has(of.columns.Before(last, b))) {
            g[e][a][b] = Convert<T>(at.grad[from - b]);
          }
        }
      }
    }
    T sums[kWidth];
    if constexpr (kSame) {
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        sums[e] = 0;
        HOLDFAST_UNROLL
        for (int a = kMost - 1; a >= 0; --a) {
          HOLDFAST_UNROLL
          for (int b = kMost - 1; b >= 0; --b) sums[e] += g[e][a][b];
        }
        sums[e] /= of.divisor.same;
      }
    } else {
      static_assert(kWidth == 1, "registers for one place's shares");
      T by_row[kMost], by_column[kMost];
      Shares(of.windows.h, of.rows, last_row, by_row);
      Shares(of.windows.w, of.columns, of.columns.Last(at.x), by_column);
      sums[0] = 0;
      HOLDFAST_UNROLL
      for (int a = kMost - 1; a >= 0; --a) {
        HOLDFAST_UNROLL
        for (int b = kMost - 1; b >= 0; --b) {
          sums[0] += g[0][a][b] * (by_row[a] * by_column[b]);
        }
      }
    }
    StorePack<kWidth>(of.out + pack * kWidth, sums);
  }

  // What each window of an axis gives to one of the places that it counts.
  HOLDFAST_HD void Shares(const PoolAxis<uint32_t>& axis, const Cover& cover,
                          Cover::At last, T (&shares)[kMost]) const {
    HOLDFAST_UNROLL
    for (int k = 0; k < kMost; ++k) {
      const Cover::At at = cover.Before(last, k);
      shares[k] = T(0);
      if (cover.Has(at)) {
        shares[k] = T(1) / static_cast<T>(of.divisor.Counted(axis, at.window));
      }
    }
  }
};

// Places that any number of windows have.
template <typename S, typename Index, bool kSame>
struct SumManyWindows {
  using T = ComputeOf<S>;
  using Place = typename PoolWindows<Index>::Place;

  AvgPoolGradient<S, Index> of;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto at = of.Split(n);
    const Place i_end = of.rows.End(at.y), j_end = of.columns.End(at.x);
    const Place j_first = of.columns.First(at.x);
    T sum = 0;
    for (Place i = of.rows.First(at.y); i < i_end; ++i) {
      const S* const row = at.grad + i * of.windows.w.out;
      for (Place j = j_first; j < j_end; ++j) {
        const T g = Convert<T>(row[j]);
        sum += kSame ? g : g / of.divisor.Of(of.windows, i, j);
      }
    }
    if (kSame) sum /= of.divisor.same;
    of.out[n] = Convert<S>(sum);
  }
};

// run(most) as a constant of 1 to 3.
template <typename Run>
absl::Status DispatchMost(int64_t most, Run run) {
  if (most == 1) return run(std::integral_constant<int, 1>());
  if (most == 2) return run(std::integral_constant<int, 2>());
  return run(std::integral_constant<int, 3>());
}

template <typename S, int kMost>
absl::Status SumFew(KernelContext& context, const PoolPlane& p,
                    const PoolDivisor& divisor, const S* grad, S* out) {
  constexpr int kFull = std::min(4, kPackWidth<S>);
  const int64_t numel = p.planes * p.in_size();
  const AvgPoolGradient<S, uint32_t> one(p, divisor, 1, grad, out);
  if (one.divisor.same == 0) {
    return ForEach(context, numel, SumFewWindows<S, kMost, 1, false>{one});
  }
  if (!PacksFit<S>(kFull, p.w.size, {out})) {
    return ForEach(context, numel, SumFewWindows<S, kMost, 1, true>{one});
  }
  const AvgPoolGradient<S, uint32_t> full(p, divisor, kFull, grad, out);
  return ForEach(context, numel / kFull,
                 SumFewWindows<S, kMost, kFull, true>{full});
}

template <typename S, typename Index>
absl::Status BackwardAs(KernelContext& context, const PoolPlane& p,
                        const PoolDivisor& divisor, const S* grad, S* out) {
  if constexpr (std::is_same_v<Index, uint32_t>) {
    const int64_t most = std::max(MostCovering(p.h), MostCovering(p.w));
    if (most <= 3) {
      return DispatchMost(most, [&](auto windows) -> absl::Status {
        return SumFew<S, windows()>(context, p, divisor, grad, out);
      });
    }
  }
  const int64_t numel = p.planes * p.in_size();
  const AvgPoolGradient<S, Index> of(p, divisor, 1, grad, out);
  if (of.divisor.same != 0) {
    return ForEach(context, numel, SumManyWindows<S, Index, true>{of});
  }
  return ForEach(context, numel, SumManyWindows<S, Index, false>{of});
}

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
        return BackwardAs<S, Index>(context, plane, divisor, grad.as<S>(),
                                    outputs[0].as<S>());
      });
}

}  // namespace holdfast::cuda
