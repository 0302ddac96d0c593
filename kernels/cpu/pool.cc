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
#include "kernels/cpu/index_loops.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/cpu/window_rows.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/pool_plane.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// A later NaN takes the place of an earlier one, as in PyTorch.
template <typename T>
HOLDFAST_INLINE bool Takes(T value, T max) {
  return (value > max) | (value != value);
}

// kStride: w.stride if chunks are to be used, else 0.
template <typename T, int kStride>
struct MaxPoolBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t* indices,
                                 const PoolPlane* plane) {
    const WindowAxis h = plane->h, w = plane->w;
    for (int64_t i = 0; i < h.out; ++i, out += w.out, indices += w.out) {
      const int64_t y_first = h.FirstTap(i), y_end = h.EndTap(i);
      const int64_t y = h.Start(i);
      ForEachWindow<WindowVec<T>::kLanes>(
          w, kStride > 0,
          [&](int64_t j) HOLDFAST_INLINE_LAMBDA {
            if constexpr (kStride > 0) {
              Chunk(in, y, y_first, y_end, h, w, j, out, indices);
            }
          },
          [&](int64_t j) HOLDFAST_INLINE_LAMBDA {
            One(in, y, y_first, y_end, h, w, j, out, indices);
          });
    }
    return 0;
  }

  // Windows that have all their columns inside.
  static HOLDFAST_INLINE void Chunk(const T* in, int64_t y, int64_t y_first,
                                    int64_t y_end, const WindowAxis& h,
                                    const WindowAxis& w, int64_t j,
                                    T* __restrict out,
                                    int64_t* __restrict indices) {
    using Vec = WindowVec<T>;
    using V = typename Vec::V;
    using I = typename Vec::I;
    const int64_t origin = (y + y_first * h.dilation) * w.size + w.Start(j);
    V max = V{} - std::numeric_limits<T>::infinity();
    I at = {};  // offset from the window's first element
    for (int64_t ky = 0; ky < y_end - y_first; ++ky) {
      for (int64_t kx = 0; kx < w.kernel; ++kx) {
        const int64_t tap = ky * h.dilation * w.size + kx * w.dilation;
        V values;
        Vec::template Load<kStride>(in + origin + tap, &values);
        const I takes = (values > max) | (values != values);
        max = takes ? values : max;
        at = takes ? I{} + static_cast<typename Vec::Int>(tap) : at;
      }
    }
    *reinterpret_cast<V*>(out + j) = max;
    for (int v = 0; v < Vec::kLanes; ++v) {
      indices[j + v] = origin + v * kStride + at[v];
    }
  }

  static HOLDFAST_INLINE void One(const T* in, int64_t y, int64_t y_first,
                                  int64_t y_end, const WindowAxis& h,
                                  const WindowAxis& w, int64_t j, T* out,
                                  int64_t* indices) {
    const int64_t x_first = w.FirstTap(j), x_end = w.EndTap(j);
    T max = -std::numeric_limits<T>::infinity();
    int64_t at =
        (y + y_first * h.dilation) * w.size + w.Start(j) + x_first * w.dilation;
    for (int64_t ky = y_first; ky < y_end; ++ky) {
      const int64_t row = (y + ky * h.dilation) * w.size;
      for (int64_t kx = x_first; kx < x_end; ++kx) {
        const int64_t x = row + w.Start(j) + kx * w.dilation;
        if (!Takes(in[x], max)) continue;
        max = in[x];
        at = x;
      }
    }
    out[j] = max;
    indices[j] = at;
  }
};

template <typename T>
void MaxPool(const KernelContext& context, const PoolPlane& plane, const T* in,
             T* out, int64_t* indices) {
  // Offsets within a chunk's windows may be 32 bits wide.
  const bool chunks = plane.w.kernel <= 64 && plane.in_size() < (1 << 30);
  const PoolPlane* geometry = &plane;
  const int64_t grain = std::max<int64_t>(
      1, 8192 / std::max(plane.out_size(), plane.in_size() / 2));
  ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      const T* from = in + p * plane.in_size();
      T* to = out + p * plane.out_size();
      int64_t* at = indices + p * plane.out_size();
      if (chunks && plane.w.stride == 1) {
        Vectorised<MaxPoolBody<T, 1>>(from, to, at, geometry);
      } else if (chunks && plane.w.stride == 2) {
        Vectorised<MaxPoolBody<T, 2>>(from, to, at, geometry);
      } else {
        MaxPoolBody<T, 0>::Run(from, to, at, geometry);
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

}  // namespace holdfast::cpu
