// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// max_pool2d, its gradient, and the gradient's adjoint. Indices count within
// one plane of H*W elements; those that come back from a client are checked.
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/index_loops.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool_plane.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast {
namespace {

// A later NaN takes the place of an earlier one, as in PyTorch.
template <typename T>
HOLDFAST_INLINE bool Takes(T value, T max) {
  return (value > max) | (value != value);
}

// 2x2 windows that do not overlap: nearly every network's.
template <typename T>
struct MaxPool2x2Body {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t* indices,
                                 int64_t rows, int64_t cols, int64_t width) {
    const int32_t w = static_cast<int32_t>(width);
    for (int64_t i = 0; i < rows; ++i) {
      const T* top = in + 2 * i * width;
      const T* bottom = top + width;
      const int64_t origin = 2 * i * width;
      for (int64_t j = 0; j < cols; ++j) {
        T max = top[2 * j];
        int32_t at = 0;
        const T b = top[2 * j + 1], c = bottom[2 * j], d = bottom[2 * j + 1];
        at = Takes(b, max) ? 1 : at;
        max = Takes(b, max) ? b : max;
        at = Takes(c, max) ? w : at;
        max = Takes(c, max) ? c : max;
        at = Takes(d, max) ? w + 1 : at;
        max = Takes(d, max) ? d : max;
        out[i * cols + j] = max;
        indices[i * cols + j] = origin + 2 * j + at;
      }
    }
    return 0;
  }
};

// One tap at a time over a row of windows, for kernels of moderate size.
// kStride > 0 is w.stride, known to the compiler.
template <typename T, int kStride>
struct MaxPoolRowsBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t* indices,
                                 const PoolPlane* plane) {
    const WindowAxis h = plane->h, w = plane->w;
    const int64_t step = kStride > 0 ? kStride : w.stride;
    for (int64_t i = 0; i < h.out; ++i, out += w.out, indices += w.out) {
      const int64_t first = h.FirstTap(i), end = h.EndTap(i);
      const int64_t y0 = h.Start(i) + first * h.dilation;
      for (int64_t j = 0; j < w.out; ++j) {
        out[j] = -std::numeric_limits<T>::infinity();
        indices[j] = y0 * w.size + w.Start(j) + w.FirstTap(j) * w.dilation;
      }
      for (int64_t ky = first; ky < end; ++ky) {
        const int64_t row = (h.Start(i) + ky * h.dilation) * w.size;
        for (int64_t kx = 0; kx < w.kernel; ++kx) {
          const int64_t b = w.FirstWindow(kx), e = w.EndWindow(kx);
          const int64_t origin = row + kx * w.dilation - w.padding;
          for (int64_t j = b; j < e; ++j) {
            const T value = in[origin + j * step];
            const bool takes = Takes(value, out[j]);
            out[j] = takes ? value : out[j];
            indices[j] = takes ? origin + j * step : indices[j];
          }
        }
      }
    }
    return 0;
  }
};

// Any window.
template <typename T>
void MaxPoolPlane(const T* in, T* out, int64_t* indices,
                  const PoolPlane& plane) {
  const WindowAxis &h = plane.h, &w = plane.w;
  for (int64_t i = 0; i < h.out; ++i) {
    const int64_t y_first = h.FirstTap(i), y_end = h.EndTap(i);
    for (int64_t j = 0; j < w.out; ++j) {
      const int64_t x_first = w.FirstTap(j), x_end = w.EndTap(j);
      T max = -std::numeric_limits<T>::infinity();
      int64_t at = (h.Start(i) + y_first * h.dilation) * w.size + w.Start(j) +
                   x_first * w.dilation;
      for (int64_t ky = y_first; ky < y_end; ++ky) {
        const int64_t row = (h.Start(i) + ky * h.dilation) * w.size;
        for (int64_t kx = x_first; kx < x_end; ++kx) {
          const int64_t x = row + w.Start(j) + kx * w.dilation;
          if (!Takes(in[x], max)) continue;
          max = in[x];
          at = x;
        }
      }
      *out++ = max;
      *indices++ = at;
    }
  }
}

template <typename T>
void MaxPool(const KernelContext& context, const PoolPlane& plane, const T* in,
             T* out, int64_t* indices) {
  const WindowAxis &h = plane.h, &w = plane.w;
  const bool pairs =
      h.kernel == 2 && w.kernel == 2 && h.stride == 2 && w.stride == 2 &&
      h.padding == 0 && w.padding == 0 && h.dilation == 1 && w.dilation == 1 &&
      2 * h.out <= h.size && 2 * w.out <= w.size && w.size < (1 << 30);
  const bool moderate = w.kernel <= 16;
  const int64_t grain = std::max<int64_t>(1, 8192 / plane.out_size());
  ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      const T* from = in + p * plane.in_size();
      T* to = out + p * plane.out_size();
      int64_t* at = indices + p * plane.out_size();
      if (pairs) {
        Vectorised<MaxPool2x2Body<T>>(from, to, at, h.out, w.out, w.size);
      } else if (!moderate) {
        MaxPoolPlane(from, to, at, plane);
      } else if (w.stride == 1) {
        Vectorised<MaxPoolRowsBody<T, 1>>(from, to, at, &plane);
      } else if (w.stride == 2) {
        Vectorised<MaxPoolRowsBody<T, 2>>(from, to, at, &plane);
      } else {
        Vectorised<MaxPoolRowsBody<T, 0>>(from, to, at, &plane);
      }
    }
  });
}

absl::Status BadPoolIndex(const Attrs& attrs, const FirstBadIndex& bad,
                          const PoolPlane& plane) {
  if (!bad.seen()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("[", attrs.schema().name, "] index ", bad.value(),
                   " is out of bounds for planes of ", plane.h.size, "x",
                   plane.w.size, " elements."));
}

}  // namespace

HOLDFAST_CPU_KERNEL(max_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  ReadWindow(attrs, /*dilated=*/true, &plane);
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    MaxPool<T>(context, plane, input.as<T>(), outputs[0].as<T>(),
               outputs[1].as<int64_t>());
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(max_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const PoolPlane plane = PlaneSizes(out.shape, inputs[0].spec->shape);
  TensorSpec grad_spec, index_spec;
  TensorView grad, index;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.dtype, &grad_spec, &grad);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[1], DType::kInt64, &index_spec, &index);
  }
  if (!s.ok()) return s;
  FirstBadIndex bad;
  s = DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t in_size = plane.in_size(), out_size = plane.out_size();
    const int64_t grain = std::max<int64_t>(1, 16384 / in_size);
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        T* to = outputs[0].as<T>() + p * in_size;
        const T* from = grad.as<T>() + p * out_size;
        const int64_t* at = index.as<int64_t>() + p * out_size;
        std::memset(to, 0, in_size * sizeof(T));
        for (int64_t i = 0; i < out_size; ++i) {
          const int64_t k = LoadOnce(at + i);
          if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(in_size)) {
            return bad.Record(k);
          }
          to[k] += from[i];
        }
      }
    });
    return absl::OkStatus();
  });
  return s.ok() ? BadPoolIndex(attrs, bad, plane) : s;
}

HOLDFAST_CPU_KERNEL(max_pool2d_gather) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  TensorSpec spec, index_spec;
  TensorView input, index;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[1], DType::kInt64, &index_spec, &index);
  }
  if (!s.ok()) return s;
  FirstBadIndex bad;
  s = DispatchItem(out.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const int64_t in_size = plane.in_size(), out_size = plane.out_size();
    const int64_t grain = std::max<int64_t>(1, 16384 / out_size);
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const U* from = input.as<U>() + p * in_size;
        const int64_t* at = index.as<int64_t>() + p * out_size;
        U* to = outputs[0].as<U>() + p * out_size;
        for (int64_t i = 0; i < out_size; ++i) {
          const int64_t k = LoadOnce(at + i);
          if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(in_size)) {
            return bad.Record(k);
          }
          to[i] = from[k];
        }
      }
    });
    return absl::OkStatus();
  });
  return s.ok() ? BadPoolIndex(attrs, bad, plane) : s;
}

}  // namespace holdfast
