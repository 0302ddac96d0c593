// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The windows of pooling as kernels walk them: in 32 bits where all that a
// plane's places and windows are made of fits, without a division per element.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_POOL_WINDOWS_H_
#define HOLDFAST_KERNELS_CUDA_POOL_WINDOWS_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/packs.h"
#include "kernels/pool_plane.h"

namespace holdfast::cuda {

// From tap to tap; where there is one tap, whatever its dilation.
inline int64_t StepOf(const WindowAxis& a) {
  return a.kernel == 1 ? 1 : a.dilation;
}

// The places of window i along an axis: First(i), and on in steps of
// `dilation` while they are below End(i).
template <typename Index>
struct PoolAxis;

// REQUIRES: FitsPoolAxis.
template <>
struct PoolAxis<uint32_t> {
  using Place = int32_t;
  Place stride, padding, dilation, size, out, extent;

  explicit PoolAxis(const WindowAxis& a)
      : stride(static_cast<Place>(a.stride)),
        padding(static_cast<Place>(a.padding)),
        dilation(static_cast<Place>(StepOf(a))),
        size(static_cast<Place>(a.size)),
        out(static_cast<Place>(a.out)),
        extent(static_cast<Place>((a.kernel - 1) * a.dilation + 1)) {}

  HOLDFAST_HD Place Start(Place window) const {
    return window * stride - padding;
  }
  HOLDFAST_HD Place First(Place window) const {
    const Place start = Start(window);
    if (start >= 0) return start;
    if (dilation == 1) return 0;
    const Place past = -start % dilation;
    return past == 0 ? 0 : dilation - past;
  }
  HOLDFAST_HD Place End(Place window) const {
    const Place end = Start(window) + extent;
    return end < size ? end : size;
  }
};

template <>
struct PoolAxis<int64_t> {
  using Place = int64_t;
  WindowAxis axis;
  Place stride, padding, dilation, size, out, extent;

  explicit PoolAxis(const WindowAxis& a)
      : axis(a),
        stride(a.stride),
        padding(a.padding),
        dilation(StepOf(a)),
        size(a.size),
        out(a.out),
        extent(a.kernel) {}  // of use without dilation alone

  HOLDFAST_HD Place Start(Place window) const { return axis.Start(window); }
  HOLDFAST_HD Place First(Place window) const {
    return axis.At(window, axis.FirstTap(window));
  }
  HOLDFAST_HD Place End(Place window) const {
    const Place taps = axis.EndTap(window);
    return taps == 0 ? 0 : axis.At(window, taps - 1) + 1;
  }
};

inline bool FitsPoolAxis(const WindowAxis& a) {
  constexpr int64_t kLimit = int64_t{1} << 28;
  for (int64_t v : {a.kernel, a.stride, a.padding, a.dilation, a.size, a.out}) {
    if (v > kLimit) return false;
  }
  return (a.kernel - 1) * a.dilation < kLimit && a.out * a.stride < kLimit;
}

// Both axes, and where element n of [planes, h, w] is for h and w windows.
template <typename Index>
struct PoolWindows {
  using Place = typename PoolAxis<Index>::Place;

  PoolAxis<Index> h, w;
  Division<Index> rows, columns;  // by the number of windows along each axis
  int64_t in_size;

  explicit PoolWindows(const PoolPlane& p)
      : h(p.h), w(p.w), rows(p.h.out), columns(p.w.out), in_size(p.in_size()) {}

  struct At {
    int64_t plane;
    Place i, j;
  };
  HOLDFAST_HD At Split(int64_t n) const {
    const auto column = columns.Split(static_cast<Index>(n));
    const auto row = rows.Split(column.quotient);
    return {row.quotient, static_cast<Place>(row.rest),
            static_cast<Place>(column.rest)};
  }
  // take(element, place in the plane) for the elements of window (i, j), some
  // of which are loaded before the first is taken.
  template <typename S, typename Take>
  HOLDFAST_HD void ForEachElement(const S* plane, Place i, Place j,
                                  Take take) const {
    constexpr int kTogether = 4;
    const Place y_end = h.End(i), x_first = w.First(j), x_end = w.End(j);
    for (Place y = h.First(i); y < y_end; y += h.dilation) {
      const Place row = y * w.size;
      for (Place x = x_first; x < x_end; x += kTogether * w.dilation) {
        ComputeOf<S> v[kTogether];
        HOLDFAST_UNROLL
        for (int k = 0; k < kTogether; ++k) {
          const Place at = x + k * w.dilation;
          if (at < x_end) v[k] = Convert<ComputeOf<S>>(plane[row + at]);
        }
        HOLDFAST_UNROLL
        for (int k = 0; k < kTogether; ++k) {
          const Place at = x + k * w.dilation;
          if (at < x_end) take(v[k], row + at);
        }
      }
    }
  }
  // The same for a window of kSide x kSide without dilation, all of which is
  // loaded at once; what is outside is taken as `absent`.
  template <int kSide, typename S, typename Take>
  HOLDFAST_HD void ForEachOfSquare(const S* plane, Place i, Place j,
                                   ComputeOf<S> absent, Take take) const {
    const Place y = h.Start(i), x = w.Start(j), first = y * w.size + x;
    ComputeOf<S> v[kSide][kSide];
    HOLDFAST_UNROLL
    for (int a = 0; a < kSide; ++a) {
      const bool row_inside = Inside(y + a, h.size);
      HOLDFAST_UNROLL
      for (int b = 0; b < kSide; ++b) {
        v[a][b] = absent;
        if (row_inside && Inside(x + b, w.size)) {
          v[a][b] = Convert<ComputeOf<S>>(plane[first + a * w.size + b]);
        }
      }
    }
    HOLDFAST_UNROLL
    for (int a = 0; a < kSide; ++a) {
      HOLDFAST_UNROLL
      for (int b = 0; b < kSide; ++b) take(v[a][b], first + a * w.size + b);
    }
  }

 private:
  static HOLDFAST_HD bool Inside(Place at, Place size) {
    return static_cast<Index>(at) < static_cast<Index>(size);
  }
};

// run(tag of the type of indices) for a pooling of `numel` results.
template <typename Run>
absl::Status DispatchWindows(const PoolPlane& p, int64_t numel, Run run) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  const bool narrow = numel <= kLimit && p.in_size() <= kLimit &&
                      p.out_size() <= kLimit && FitsPoolAxis(p.h) &&
                      FitsPoolAxis(p.w);
  return narrow ? run(TypeTag<uint32_t>{}) : run(TypeTag<int64_t>{});
}

// run(side of the windows) as a constant, where kernels are made for it; 0:
// windows of any kind.
template <typename Index, typename Run>
absl::Status DispatchSide(const PoolPlane& p, Run run) {
  if constexpr (std::is_same_v<Index, uint32_t>) {
    const bool square =
        p.h.kernel == p.w.kernel && p.h.dilation == 1 && p.w.dilation == 1;
    if (square && p.h.kernel == 2) return run(std::integral_constant<int, 2>());
    if (square && p.h.kernel == 3) return run(std::integral_constant<int, 3>());
  }
  return run(std::integral_constant<int, 0>());
}

// run(contiguous first input) where there are results.
template <typename Run>
absl::Status WithPoolInput(KernelContext& context, const TensorView& input,
                           const TensorView& output, Run run) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  ContiguousOperands<1> in;
  absl::Status s = in.MakeOne(context, 0, input, output.spec->dtype);
  return s.ok() ? run(in.views[0]) : s;
}

// run(stored type, type of indices, contiguous first input) of floating point
// numbers.
template <typename Run>
absl::Status WithPoolFloats(KernelContext& context, const PoolPlane& plane,
                            const TensorView& input, const TensorView& output,
                            Run run) {
  return WithPoolInput(
      context, input, output, [&](const TensorView& in) -> absl::Status {
        return DispatchStoredFloat(
            output.spec->dtype, [&](auto stored) -> absl::Status {
              return DispatchWindows(plane, output.spec->numel(),
                                     [&](auto index) -> absl::Status {
                                       return run(stored, index, in);
                                     });
            });
      });
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_POOL_WINDOWS_H_
