// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// max_pool2d, its gradient and the gradient's adjoint; adaptive_max_pool2d;
// avg_pool2d and its gradient. A thread per element of the result, which visits
// the taps inside the input only; the gradient of max_pool2d alone adds
// atomically, since its indices are anybody's.
#include <limits>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/pool_plane.h"

namespace holdfast {
namespace {

// The largest so far and where; a later NaN takes the place of an earlier one.
template <typename T>
struct Largest {
  T value = -std::numeric_limits<T>::infinity();
  int64_t at = -1;

  HOLDFAST_HD void Take(T candidate, int64_t place) {
    if (at < 0) at = place;  // a window of -inf alone points at its first
    if (!(candidate > value) && candidate == candidate) return;
    value = candidate;
    at = place;
  }
};

// visit(place in the plane) for the elements of window (i, j).
template <typename Visit>
HOLDFAST_HD void ForEachPlace(const PoolPlane& p, int64_t i, int64_t j,
                              Visit visit) {
  const int64_t y_end = p.h.EndTap(i), x_end = p.w.EndTap(j);
  for (int64_t ky = p.h.FirstTap(i); ky < y_end; ++ky) {
    const int64_t row = p.h.At(i, ky) * p.w.size;
    for (int64_t kx = p.w.FirstTap(j); kx < x_end; ++kx) {
      visit(row + p.w.At(j, kx));
    }
  }
}

template <typename T>
struct MaxPool {
  PoolPlane plane;
  const T* in;
  T* out;
  int64_t* indices;

  HOLDFAST_HD void operator()(int64_t n) const {
    const PoolPlane& p = plane;
    const T* const image = in + n / p.out_size() * p.in_size();
    Largest<T> largest;
    ForEachPlace(p, n / p.w.out % p.h.out, n % p.w.out,
                 [&](int64_t at) { largest.Take(image[at], at); });
    out[n] = largest.value;
    indices[n] = largest.at;
  }
};

// Window i of an axis spans [i * size / out, the ceiling of (i + 1) * size /
// out).
template <typename T>
struct AdaptiveMaxPool {
  PoolPlane plane;
  const T* in;
  T* out;
  int64_t* indices;

  HOLDFAST_HD void operator()(int64_t n) const {
    const WindowAxis &h = plane.h, &w = plane.w;
    const int64_t x = n % w.out, y = n / w.out % h.out;
    const T* const image = in + n / plane.out_size() * plane.in_size();
    const int64_t y_end = ((y + 1) * h.size + h.out - 1) / h.out;
    const int64_t x_end = ((x + 1) * w.size + w.out - 1) / w.out;
    Largest<T> largest;
    for (int64_t v = y * h.size / h.out; v < y_end; ++v) {
      for (int64_t u = x * w.size / w.out; u < x_end; ++u) {
        largest.Take(image[v * w.size + u], v * w.size + u);
      }
    }
    out[n] = largest.value;
    indices[n] = largest.at;
  }
};

template <typename T>
struct AvgPool {
  PoolPlane plane;
  PoolDivisor divisor;
  const T* in;
  T* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const PoolPlane& p = plane;
    const T* const image = in + n / p.out_size() * p.in_size();
    const int64_t i = n / p.w.out % p.h.out, j = n % p.w.out;
    T sum = 0;
    ForEachPlace(p, i, j, [&](int64_t at) { sum += image[at]; });
    out[n] = sum / static_cast<T>(divisor.Of(p, i, j));
  }
};

// The windows of an axis, without dilation, that have place `at`: [first, end).
struct Covering {
  int64_t first, end;

  HOLDFAST_HD Covering(const WindowAxis& axis, int64_t at) {
    const int64_t past = at + axis.padding;  // window starts up to here
    first = past < axis.kernel ? 0 : (past - axis.kernel) / axis.stride + 1;
    end = past / axis.stride + 1;
    if (end > axis.out) end = axis.out;
  }
};

template <typename T>
struct AvgPoolBackward {
  PoolPlane plane;
  PoolDivisor divisor;
  const T* grad;
  T* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const PoolPlane& p = plane;
    const T* const of_plane = grad + n / p.in_size() * p.out_size();
    const Covering rows(p.h, n / p.w.size % p.h.size);
    const Covering columns(p.w, n % p.w.size);
    T sum = 0;
    for (int64_t i = rows.first; i < rows.end; ++i) {
      for (int64_t j = columns.first; j < columns.end; ++j) {
        sum += of_plane[i * p.w.out + j] / static_cast<T>(divisor.Of(p, i, j));
      }
    }
    out[n] = sum;
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

template <typename T>
struct AddAtIndices {
  PoolPlane plane;
  const T* grad;
  const int64_t* index;
  T* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    AtomicAdd(out + n / plane.out_size() * plane.in_size() + index[n], grad[n]);
  }
};

template <typename T>
struct TakeAtIndices {
  PoolPlane plane;
  const T* in;
  const int64_t* index;
  T* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    out[n] = in[n / plane.out_size() * plane.in_size() + index[n]];
  }
};

// run(contiguous first input) where there are results.
template <typename Run>
absl::Status WithInput(KernelContext& context, const TensorView& input,
                       const TensorView& output, Run run) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  ContiguousOperands<1> in;
  absl::Status s = in.MakeOne(context, 0, input, output.spec->dtype);
  return s.ok() ? run(in.views[0]) : s;
}

// run(type, contiguous first input) of floating point numbers.
template <typename Run>
absl::Status WithFloats(KernelContext& context, const TensorView& input,
                        const TensorView& output, Run run) {
  return WithInput(
      context, input, output, [&](const TensorView& in) -> absl::Status {
        return DispatchFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
          return run(tag, in);
        });
      });
}

// run(contiguous first input, checked indices).
template <typename Run>
absl::Status WithIndices(KernelContext& context, const Attrs& attrs,
                         const PoolPlane& plane,
                         absl::Span<const TensorView> inputs,
                         const TensorView& output, Run run) {
  return WithInput(
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
  return WithFloats(context, inputs[0], outputs[0],
                    [&](auto tag, const TensorView& in) -> absl::Status {
                      using T = typename decltype(tag)::type;
                      return ForEach(
                          context, outputs[0].spec->numel(),
                          MaxPool<T>{plane, in.as<T>(), outputs[0].as<T>(),
                                     outputs[1].as<int64_t>()});
                    });
}

HOLDFAST_CUDA_KERNEL(adaptive_max_pool2d) {
  const PoolPlane plane =
      PlaneSizes(inputs[0].spec->shape, outputs[0].spec->shape);
  return WithFloats(
      context, inputs[0], outputs[0],
      [&](auto tag, const TensorView& in) -> absl::Status {
        using T = typename decltype(tag)::type;
        return ForEach(context, outputs[0].spec->numel(),
                       AdaptiveMaxPool<T>{plane, in.as<T>(), outputs[0].as<T>(),
                                          outputs[1].as<int64_t>()});
      });
}

HOLDFAST_CUDA_KERNEL(max_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  const PoolPlane plane = PlaneSizes(out.shape, inputs[0].spec->shape);
  return WithIndices(
      context, attrs, plane, inputs, outputs[0],
      [&](const TensorView& grad, const int64_t* index) -> absl::Status {
        absl::Status s =
            Cuda(context).FillBytes(outputs[0].data, 0, out.nbytes());
        if (!s.ok()) return s;
        return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          return ForEachInLanes(
              context, Lanes{plane.planes, plane.out_size(), 1},
              AddAtIndices<T>{plane, grad.as<T>(), index, outputs[0].as<T>()});
        });
      });
}

// Of indices too: the pooling of 3-D images takes those of its planes.
HOLDFAST_CUDA_KERNEL(max_pool2d_gather) {
  const TensorSpec& out = *outputs[0].spec;
  const PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  return WithIndices(
      context, attrs, plane, inputs, outputs[0],
      [&](const TensorView& in, const int64_t* index) -> absl::Status {
        return DispatchBits(out.dtype, [&](auto tag) -> absl::Status {
          using Bits = typename decltype(tag)::type;
          return ForEach(context, out.numel(),
                         TakeAtIndices<Bits>{plane, in.as<Bits>(), index,
                                             outputs[0].as<Bits>()});
        });
      });
}

HOLDFAST_CUDA_KERNEL(avg_pool2d) {
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, outputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  return WithFloats(context, inputs[0], outputs[0],
                    [&](auto tag, const TensorView& in) -> absl::Status {
                      using T = typename decltype(tag)::type;
                      return ForEach(
                          context, outputs[0].spec->numel(),
                          AvgPool<T>{plane, PoolDivisor(attrs), in.as<T>(),
                                     outputs[0].as<T>()});
                    });
}

HOLDFAST_CUDA_KERNEL(avg_pool2d_backward) {
  PoolPlane plane = PlaneSizes(outputs[0].spec->shape, inputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  return WithFloats(context, inputs[0], outputs[0],
                    [&](auto tag, const TensorView& grad) -> absl::Status {
                      using T = typename decltype(tag)::type;
                      return ForEach(
                          context, outputs[0].spec->numel(),
                          AvgPoolBackward<T>{plane, PoolDivisor(attrs),
                                             grad.as<T>(), outputs[0].as<T>()});
                    });
}

}  // namespace holdfast
