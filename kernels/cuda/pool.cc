// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// max_pool2d, its gradient and the gradient's adjoint; adaptive_max_pool2d;
// avg_pool2d and its gradient. A thread per element of the result; only the
// gradient of max_pool2d adds atomically, since its indices are anybody's.
#include <limits>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/windows.h"

namespace holdfast {
namespace {

struct Pool {
  int64_t planes = 1;
  Windows windows;  // axes 1 and 2
};

Pool PoolOf(absl::Span<const int64_t> in, absl::Span<const int64_t> out) {
  Pool pool;
  const size_t rank = in.size();
  for (size_t d = 0; d + 2 < rank; ++d) pool.planes *= in[d];
  for (size_t i = 0; i < 2; ++i) {
    pool.windows.axis[1 + i].size = in[rank - 2 + i];
    pool.windows.axis[1 + i].out = out[rank - 2 + i];
  }
  return pool;
}

void ReadWindow(const Attrs& attrs, bool dilated, Pool* pool) {
  const Dims& kernel = attrs.Ints("kernel_size");
  const Dims& stride = attrs.None("stride") ? kernel : attrs.Ints("stride");
  const Dims& padding = attrs.Ints("padding");
  for (int i = 0; i < 2; ++i) {
    WindowAxis& axis = pool->windows.axis[1 + i];
    axis.kernel = kernel[i];
    axis.stride = stride[i];
    axis.padding = padding[i];
    if (dilated) axis.dilation = attrs.Ints("dilation")[i];
  }
}

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

template <typename T>
absl::Status MaxPool(KernelContext& context, const Pool& pool, const T* in,
                     T* out, int64_t* indices) {
  const Windows w = pool.windows;
  return ForEach(context, pool.planes * w.columns(),
                 [=] HOLDFAST_LAMBDA(int64_t i) {
                   const T* const plane = in + i / w.columns() * w.plane();
                   Largest<T> largest;
                   for (int64_t tap = 0; tap < w.taps(); ++tap) {
                     const int64_t place = w.PlaceOf(i % w.columns(), tap);
                     if (place >= 0) largest.Take(plane[place], place);
                   }
                   out[i] = largest.value;
                   indices[i] = largest.at;
                 });
}

// Window i of an axis spans [i * size / out, the ceiling of (i + 1) * size /
// out).
template <typename T>
absl::Status AdaptiveMaxPool(KernelContext& context, const Pool& pool,
                             const T* in, T* out, int64_t* indices) {
  const WindowAxis h = pool.windows.axis[1], w = pool.windows.axis[2];
  return ForEach(
      context, pool.planes * h.out * w.out, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t x = i % w.out, y = i / w.out % h.out;
        const T* const plane = in + i / (w.out * h.out) * h.size * w.size;
        const int64_t y_end = ((y + 1) * h.size + h.out - 1) / h.out;
        const int64_t x_end = ((x + 1) * w.size + w.out - 1) / w.out;
        Largest<T> largest;
        for (int64_t v = y * h.size / h.out; v < y_end; ++v) {
          for (int64_t u = x * w.size / w.out; u < x_end; ++u) {
            largest.Take(plane[v * w.size + u], v * w.size + u);
          }
        }
        out[i] = largest.value;
        indices[i] = largest.at;
      });
}

// What a window's mean divides by.
struct Divisor {
  bool include_pad;
  int64_t given;  // 0: none

  HOLDFAST_HD int64_t Counted(const WindowAxis& axis, int64_t window) const {
    const int64_t start = axis.Start(window);
    int64_t end = start + axis.kernel;
    const int64_t last = axis.size + (include_pad ? axis.padding : 0);
    if (end > last) end = last;
    return end - (include_pad || start > 0 ? start : 0);
  }
  HOLDFAST_HD int64_t Of(const Windows& w, int64_t column) const {
    if (given != 0) return given;
    return Counted(w.axis[1], column / w.axis[2].out) *
           Counted(w.axis[2], column % w.axis[2].out);
  }
};

Divisor DivisorOf(const Attrs& attrs) {
  return {attrs.Bool("count_include_pad"),
          attrs.None("divisor_override") ? 0 : attrs.Int("divisor_override")};
}

template <typename T>
absl::Status AvgPool(KernelContext& context, const Pool& pool,
                     const Divisor& divisor, const T* in, T* out) {
  const Windows w = pool.windows;
  return ForEach(context, pool.planes * w.columns(),
                 [=] HOLDFAST_LAMBDA(int64_t i) {
                   const T* const plane = in + i / w.columns() * w.plane();
                   const int64_t column = i % w.columns();
                   T sum = 0;
                   for (int64_t tap = 0; tap < w.taps(); ++tap) {
                     const int64_t place = w.PlaceOf(column, tap);
                     if (place >= 0) sum += plane[place];
                   }
                   out[i] = sum / static_cast<T>(divisor.Of(w, column));
                 });
}

template <typename T>
absl::Status AvgPoolBackward(KernelContext& context, const Pool& pool,
                             const Divisor& divisor, const T* grad, T* out) {
  const Windows w = pool.windows;
  return ForEach(
      context, pool.planes * w.plane(), [=] HOLDFAST_LAMBDA(int64_t i) {
        const T* const plane = grad + i / w.plane() * w.columns();
        T sum = 0;
        for (int64_t tap = 0; tap < w.taps(); ++tap) {
          const int64_t column = w.ColumnOf(i % w.plane(), tap);
          if (column < 0) continue;
          sum += plane[column] / static_cast<T>(divisor.Of(w, column));
        }
        out[i] = sum;
      });
}

// Waits.
absl::Status CheckPoolIndices(KernelContext& context, const Attrs& attrs,
                              const Pool& pool, const int64_t* index) {
  const int64_t size = pool.windows.plane();
  absl::StatusOr<int64_t> fault = FirstFault(
      context, pool.planes * pool.windows.columns(),
      [=] HOLDFAST_LAMBDA(int64_t i) { return !InRange(index[i], size); });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  absl::StatusOr<int64_t> bad = ReadElement(context, index + *fault);
  if (!bad.ok()) return bad.status();
  return absl::OutOfRangeError(absl::StrCat(
      "[", attrs.schema().name, "] index ", *bad,
      " is out of bounds for planes of ", pool.windows.axis[1].size, "x",
      pool.windows.axis[2].size, " elements."));
}

template <typename T>
absl::Status AddAtIndices(KernelContext& context, const Pool& pool,
                          const T* grad, const int64_t* index, T* out) {
  const Windows w = pool.windows;
  return ForEach(
      context, pool.planes * w.columns(), [=] HOLDFAST_LAMBDA(int64_t i) {
        AtomicAdd(out + i / w.columns() * w.plane() + index[i], grad[i]);
      });
}

template <typename Bits>
absl::Status TakeAtIndices(KernelContext& context, const Pool& pool,
                           const Bits* in, const int64_t* index, Bits* out) {
  const Windows w = pool.windows;
  return ForEach(context, pool.planes * w.columns(),
                 [=] HOLDFAST_LAMBDA(int64_t i) {
                   out[i] = in[i / w.columns() * w.plane() + index[i]];
                 });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(max_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  Pool pool = PoolOf(inputs[0].spec->shape, out.shape);
  ReadWindow(attrs, /*dilated=*/true, &pool);
  TensorSpec spec;
  TensorView in;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return MaxPool<T>(context, pool, in.as<T>(), outputs[0].as<T>(),
                      outputs[1].as<int64_t>());
  });
}

HOLDFAST_CUDA_KERNEL(adaptive_max_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Pool pool = PoolOf(inputs[0].spec->shape, out.shape);
  TensorSpec spec;
  TensorView in;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return AdaptiveMaxPool<T>(context, pool, in.as<T>(), outputs[0].as<T>(),
                              outputs[1].as<int64_t>());
  });
}

HOLDFAST_CUDA_KERNEL(max_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Pool pool = PoolOf(out.shape, inputs[0].spec->shape);
  TensorSpec specs[2];
  TensorView grad, index;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.dtype, &specs[0], &grad);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[1], DType::kInt64, &specs[1], &index);
  }
  if (s.ok()) {
    s = CheckPoolIndices(context, attrs, pool, index.as<int64_t>());
  }
  if (s.ok()) s = Cuda(context).FillBytes(outputs[0].data, 0, out.nbytes());
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return AddAtIndices<T>(context, pool, grad.as<T>(), index.as<int64_t>(),
                           outputs[0].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(max_pool2d_gather) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Pool pool = PoolOf(inputs[0].spec->shape, out.shape);
  TensorSpec specs[2];
  TensorView in, index;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.dtype, &specs[0], &in);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[1], DType::kInt64, &specs[1], &index);
  }
  if (s.ok()) {
    s = CheckPoolIndices(context, attrs, pool, index.as<int64_t>());
  }
  if (!s.ok()) return s;
  return DispatchBits(out.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return TakeAtIndices<Bits>(context, pool, in.as<Bits>(),
                               index.as<int64_t>(), outputs[0].as<Bits>());
  });
}

HOLDFAST_CUDA_KERNEL(avg_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  Pool pool = PoolOf(inputs[0].spec->shape, out.shape);
  ReadWindow(attrs, /*dilated=*/false, &pool);
  TensorSpec spec;
  TensorView in;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return AvgPool<T>(context, pool, DivisorOf(attrs), in.as<T>(),
                      outputs[0].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(avg_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  Pool pool = PoolOf(out.shape, inputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &pool);
  TensorSpec spec;
  TensorView grad;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &grad);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return AvgPoolBackward<T>(context, pool, DivisorOf(attrs), grad.as<T>(),
                              outputs[0].as<T>());
  });
}

}  // namespace holdfast
