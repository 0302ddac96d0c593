// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// max_pool2d, its gradient and the gradient's adjoint; adaptive_max_pool2d. A
// thread per element of the result, which visits the taps inside the input
// only; the gradient of max_pool2d alone adds atomically, since its indices are
// anybody's.
#include <algorithm>
#include <limits>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/cuda/pool_windows.h"

namespace holdfast::cuda {
namespace {

// The largest so far and where; a later NaN takes the place of an earlier one.
template <typename T, typename Place>
struct Largest {
  T value = -std::numeric_limits<T>::infinity();
  Place at;  // a window of -inf alone points at its first

  HOLDFAST_HD explicit Largest(Place first) : at(first) {}
  HOLDFAST_HD void Take(T candidate, Place place) {
    if (candidate > value || candidate != candidate) {
      value = candidate;
      at = place;
    }
  }
};

template <typename S, typename Index, int kSide>
struct MaxPool {
  using T = ComputeOf<S>;
  using Place = typename PoolWindows<Index>::Place;

  PoolWindows<Index> windows;
  const S* in;
  S* out;
  int64_t* indices;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto at = windows.Split(n);
    const S* const image = in + at.plane * windows.in_size;
    const Place y = windows.h.First(at.i), x = windows.w.First(at.j);
    // -1 where nothing of the window is inside.
    const bool empty = y >= windows.h.End(at.i) || x >= windows.w.End(at.j);
    Largest<T, Place> largest(empty ? Place(-1) : y * windows.w.size + x);
    const auto take = [&](T element, Place place) {
      largest.Take(element, place);
    };
    if constexpr (kSide == 0) {
      windows.ForEachElement(image, at.i, at.j, take);
    } else {
      // What is never larger and no NaN is never taken.
      constexpr T kAbsent = -std::numeric_limits<T>::infinity();
      windows.template ForEachOfSquare<kSide>(image, at.i, at.j, kAbsent, take);
    }
    out[n] = Convert<S>(largest.value);
    indices[n] = largest.at;
  }
};

// Window i of an axis spans [i * size / out, the ceiling of (i + 1) * size /
// out).
template <typename Index>
struct AdaptiveAxis {
  Index size, out;
  Division<Index> by_out;

  explicit AdaptiveAxis(const WindowAxis& a)
      : size(static_cast<Index>(a.size)),
        out(static_cast<Index>(a.out)),
        by_out(a.out) {}
  HOLDFAST_HD Index First(Index i) const { return by_out.Divide(i * size); }
  HOLDFAST_HD Index End(Index i) const {
    return by_out.Divide((i + 1) * size + out - 1);
  }
};

template <typename S, typename Index>
struct AdaptiveMaxPool {
  using T = ComputeOf<S>;

  AdaptiveAxis<Index> h, w;
  const S* in;
  S* out;
  int64_t* indices;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto column = w.by_out.Split(static_cast<Index>(n));
    const auto row = h.by_out.Split(column.quotient);
    const int64_t plane = row.quotient;
    const S* const image = in + plane * (int64_t{1} * h.size * w.size);
    const Index y = h.First(row.rest), y_end = h.End(row.rest);
    const Index x = w.First(column.rest), x_end = w.End(column.rest);
    Largest<T, Index> largest(y * w.size + x);
    for (Index v = y; v < y_end; ++v) {
      for (Index u = x; u < x_end; ++u) {
        largest.Take(Convert<T>(image[v * w.size + u]), v * w.size + u);
      }
    }
    out[n] = Convert<S>(largest.value);
    indices[n] = static_cast<int64_t>(largest.at);
  }
};

// Waits.
absl::Status CheckPoolIndices(KernelContext& context, const Attrs& attrs,
                              const PoolPlane& p, const int64_t* index) {
  const int64_t size = p.in_size();
  absl::StatusOr<int64_t> fault = FirstFault(
      context, p.planes * p.out_size(),
      [=] HOLDFAST_LAMBDA(int64_t i) { return !InRange(index[i], size); });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  absl::StatusOr<int64_t> bad = ReadElement(context, index + *fault);
  if (!bad.ok()) return bad.status();
  return absl::OutOfRangeError(
      absl::StrCat("[", attrs.schema().name, "] index ", *bad,
                   " is out of bounds for planes of ", p.h.size, "x", p.w.size,
                   " elements."));
}

// Sums of 16-bit floats are made in float.
template <typename S, typename Index>
struct AddAtIndices {
  using T = ComputeOf<S>;

  Division<Index> plane;  // by its windows
  int64_t in_size;
  const S* grad;
  const int64_t* index;
  T* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const int64_t p = plane.Divide(static_cast<Index>(n));
    AtomicAdd(out + p * in_size + index[n], Convert<T>(grad[n]));
  }
};

template <typename S, typename Index>
absl::Status AddGradients(KernelContext& context, const PoolPlane& plane,
                          const S* grad, const int64_t* index,
                          ComputeOf<S>* out) {
  return ForEachInLanes(
      context, Lanes{plane.planes, plane.out_size(), 1},
      AddAtIndices<S, Index>{Division<Index>(plane.out_size()), plane.in_size(),
                             grad, index, out});
}

template <typename S>
absl::Status MaxPoolBackward(KernelContext& context, const PoolPlane& plane,
                             const S* grad, const int64_t* index,
                             const TensorView& output) {
  using T = ComputeOf<S>;
  const TensorSpec spec = ContiguousSpec(kStoredDType<T>, output.spec->shape);
  TensorView sums = output;
  if (spec.dtype != output.spec->dtype) {
    sums = {ScratchOf<T>(context, spec.numel()), &spec};
    if (sums.data == nullptr) return NoScratch();
  }
  absl::Status s = Cuda(context).FillBytes(sums.data, 0, spec.nbytes());
  if (!s.ok()) return s;
  s = DispatchIndex(plane.planes * plane.out_size(),
                    [&](auto tag) -> absl::Status {
                      using Index = typename decltype(tag)::type;
                      return AddGradients<S, Index>(context, plane, grad, index,
                                                    sums.as<T>());
                    });
  return s.ok() && sums.data != output.data ? CudaCopy(context, sums, output)
                                            : s;
}

template <typename Bits, typename Index>
struct TakeAtIndices {
  Division<Index> plane;  // by its windows
  int64_t in_size;
  const Bits* in;
  const int64_t* index;
  Bits* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const int64_t p = plane.Divide(static_cast<Index>(n));
    out[n] = in[p * in_size + index[n]];
  }
};

// run(contiguous first input, checked indices).
template <typename Run>
absl::Status WithIndices(KernelContext& context, const Attrs& attrs,
                         const PoolPlane& plane,
                         absl::Span<const TensorView> inputs,
                         const TensorView& output, Run run) {
  return WithPoolInput(
      context, inputs[0], output, [&](const TensorView& in) -> absl::Status {
        ContiguousOperands<1> index;
        absl::Status s = index.MakeOne(context, 0, inputs[1], DType::kInt64);
        if (s.ok()) {
          s = CheckPoolIndices(context, attrs, plane, index.as<int64_t>(0));
        }
        return s.ok() ? run(in, index.as<int64_t>(0)) : s;
      });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(max_pool2d) {
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, outputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/true, &plane);
  return WithPoolFloats(
      context, plane, inputs[0], outputs[0],
      [&](auto stored, auto index, const TensorView& in) -> absl::Status {
        using S = typename decltype(stored)::type;
        using Index = typename decltype(index)::type;
        return DispatchSide<Index>(plane, [&](auto side) -> absl::Status {
          return ForEach(context, outputs[0].spec->numel(),
                         MaxPool<S, Index, side()>{
                             PoolWindows<Index>(plane), in.as<S>(),
                             outputs[0].as<S>(), outputs[1].as<int64_t>()});
        });
      });
}

HOLDFAST_CUDA_KERNEL(adaptive_max_pool2d) {
  const PoolPlane plane =
      PlaneSizes(inputs[0].spec->shape, outputs[0].spec->shape);
  // (i + 1) * size + out - 1 is at most this.
  const int64_t most = std::max((plane.h.out + 1) * (plane.h.size + 1),
                                (plane.w.out + 1) * (plane.w.size + 1));
  return WithPoolInput(
      context, inputs[0], outputs[0],
      [&](const TensorView& in) -> absl::Status {
        return DispatchStoredFloat(
            outputs[0].spec->dtype, [&](auto stored) -> absl::Status {
              using S = typename decltype(stored)::type;
              const int64_t limit =
                  std::max({most, plane.in_size(), outputs[0].spec->numel()});
              return DispatchIndex(limit, [&](auto index) -> absl::Status {
                using Index = typename decltype(index)::type;
                return ForEach(
                    context, outputs[0].spec->numel(),
                    AdaptiveMaxPool<S, Index>{AdaptiveAxis<Index>(plane.h),
                                              AdaptiveAxis<Index>(plane.w),
                                              in.as<S>(), outputs[0].as<S>(),
                                              outputs[1].as<int64_t>()});
              });
            });
      });
}

HOLDFAST_CUDA_KERNEL(max_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  const PoolPlane plane = PlaneSizes(out.shape, inputs[0].spec->shape);
  return WithIndices(
      context, attrs, plane, inputs, outputs[0],
      [&](const TensorView& grad, const int64_t* index) -> absl::Status {
        return DispatchStoredFloat(out.dtype, [&](auto tag) -> absl::Status {
          using S = typename decltype(tag)::type;
          return MaxPoolBackward<S>(context, plane, grad.as<S>(), index,
                                    outputs[0]);
        });
      });
}

// Of indices too: the pooling of 3-D images takes those of its planes.
HOLDFAST_CUDA_KERNEL(max_pool2d_gather) {
  const TensorSpec& out = *outputs[0].spec;
  const PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  return WithIndices(
      context, attrs, plane, inputs, outputs[0],
      [&](const TensorView& in, const int64_t* from) -> absl::Status {
        return DispatchBits(out.dtype, [&](auto tag) -> absl::Status {
          using Bits = typename decltype(tag)::type;
          return DispatchIndex(out.numel(), [&](auto index) -> absl::Status {
            using Index = typename decltype(index)::type;
            return ForEach(
                context, out.numel(),
                TakeAtIndices<Bits, Index>{Division<Index>(plane.out_size()),
                                           plane.in_size(), in.as<Bits>(), from,
                                           outputs[0].as<Bits>()});
          });
        });
      });
}

}  // namespace holdfast::cuda
