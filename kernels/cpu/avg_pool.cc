// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// avg_pool2d and its gradient.
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/cpu/window_rows.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/pool_plane.h"

namespace holdfast::cpu {
namespace {

HOLDFAST_INLINE int64_t RowCount(const WindowAxis& h, int64_t window,
                                 const PoolDivisor& divisor) {
  return divisor.given != 0 ? divisor.given : divisor.Counted(h, window);
}

// kStride: w.stride if chunks are to be used, else 0. `counts`: what each
// column of windows counts.
template <typename T, int kStride>
struct AvgPoolBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, const PoolPlane* plane,
                                 const T* counts, const PoolDivisor* divisor) {
    const WindowAxis h = plane->h, w = plane->w;
    for (int64_t i = 0; i < h.out; ++i, out += w.out) {
      const T rows = static_cast<T>(RowCount(h, i, *divisor));
      const int64_t y_first = h.FirstTap(i), y_end = h.EndTap(i);
      const T* image = in + h.Start(i) * w.size;
      ForEachWindow<WindowVec<T>::kLanes>(
          w, kStride > 0,
          [&](int64_t j) HOLDFAST_INLINE_LAMBDA {
            if constexpr (kStride > 0) {
              Chunk(image, y_first, y_end, w, j, rows, counts, out);
            }
          },
          [&](int64_t j) HOLDFAST_INLINE_LAMBDA {
            T sum = 0;
            for (int64_t ky = y_first; ky < y_end; ++ky) {
              const T* row = image + ky * w.size + w.Start(j);
              const int64_t end = w.EndTap(j);
              for (int64_t kx = w.FirstTap(j); kx < end; ++kx) sum += row[kx];
            }
            out[j] = sum / (rows * counts[j]);
          });
    }
    return 0;
  }

  static HOLDFAST_INLINE void Chunk(const T* image, int64_t y_first,
                                    int64_t y_end, const WindowAxis& w,
                                    int64_t j, T rows,
                                    const T* __restrict counts,
                                    T* __restrict out) {
    using Vec = WindowVec<T>;
    using V = typename Vec::V;
    V sums = {};
    for (int64_t ky = y_first; ky < y_end; ++ky) {
      const T* row = image + ky * w.size + w.Start(j);
      for (int64_t kx = 0; kx < w.kernel; ++kx) {
        V values;
        Vec::template Load<kStride>(row + kx, &values);
        sums += values;
      }
    }
    const V columns = *reinterpret_cast<const V*>(counts + j);
    *reinterpret_cast<V*>(out + j) = sums / (columns * rows);
  }
};

// Each window's share of the gradient, a block of windows at a time, then
// added to its elements.
template <typename T>
struct AvgPoolBackwardBody {
  static HOLDFAST_INLINE int Run(const T* grad, T* out, const PoolPlane* plane,
                                 const T* counts, const PoolDivisor* divisor) {
    constexpr int64_t kBlock = 64;
    const WindowAxis h = plane->h, w = plane->w;
    std::memset(out, 0, plane->in_size() * sizeof(T));
    T shares[kBlock];
    for (int64_t i = 0; i < h.out; ++i, grad += w.out) {
      const T rows = static_cast<T>(RowCount(h, i, *divisor));
      const int64_t y_first = h.FirstTap(i), y_end = h.EndTap(i);
      for (int64_t j0 = 0; j0 < w.out; j0 += kBlock) {
        const int64_t n = std::min(kBlock, w.out - j0);
        for (int64_t j = 0; j < n; ++j) {
          shares[j] = grad[j0 + j] / (rows * counts[j0 + j]);
        }
        for (int64_t ky = y_first; ky < y_end; ++ky) {
          T* image = out + (h.Start(i) + ky) * w.size;
          for (int64_t j = 0; j < n; ++j) {
            T* row = image + w.Start(j0 + j);
            const int64_t end = w.EndTap(j0 + j);
            for (int64_t kx = w.FirstTap(j0 + j); kx < end; ++kx) {
              row[kx] += shares[j];
            }
          }
        }
      }
    }
    return 0;
  }
};

template <typename T>
T* ColumnCounts(KernelContext& context, const WindowAxis& w,
                const PoolDivisor& divisor) {
  T* counts = static_cast<T*>(context.Scratch(w.out * sizeof(T)));
  if (counts == nullptr) return nullptr;
  for (int64_t j = 0; j < w.out; ++j) {
    counts[j] =
        divisor.given != 0 ? T{1} : static_cast<T>(divisor.Counted(w, j));
  }
  return counts;
}

}  // namespace

HOLDFAST_CPU_KERNEL(avg_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  const PoolDivisor divisor(attrs);
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* counts = ColumnCounts<T>(context, plane.w, divisor);
    if (counts == nullptr) {
      return absl::ResourceExhaustedError("[avg_pool2d] no scratch memory.");
    }
    const int64_t grain = std::max<int64_t>(
        1, 8192 / std::max(plane.out_size(), plane.in_size() / 2));
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const T* from = input.as<T>() + p * plane.in_size();
        T* to = outputs[0].as<T>() + p * plane.out_size();
        const PoolPlane* geometry = &plane;
        const PoolDivisor* by = &divisor;
        if (plane.w.stride == 1) {
          Vectorised<AvgPoolBody<T, 1>>(from, to, geometry, counts, by);
        } else if (plane.w.stride == 2) {
          Vectorised<AvgPoolBody<T, 2>>(from, to, geometry, counts, by);
        } else {
          AvgPoolBody<T, 0>::Run(from, to, geometry, counts, by);
        }
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(avg_pool2d_backward) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  PoolPlane plane = PlaneSizes(out.shape, inputs[0].spec->shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  const PoolDivisor divisor(attrs);
  TensorSpec spec;
  TensorView grad;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &grad);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* counts = ColumnCounts<T>(context, plane.w, divisor);
    if (counts == nullptr) {
      return absl::ResourceExhaustedError(
          "[avg_pool2d_backward] no scratch memory.");
    }
    const int64_t grain = std::max<int64_t>(1, 8192 / plane.in_size());
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const PoolPlane* geometry = &plane;
        const PoolDivisor* by = &divisor;
        const T* columns = counts;
        const T* from = grad.as<T>() + p * plane.out_size();
        T* to = outputs[0].as<T>() + p * plane.in_size();
        Vectorised<AvgPoolBackwardBody<T>>(from, to, geometry, columns, by);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
