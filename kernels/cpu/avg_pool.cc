// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// avg_pool2d and its gradient.
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pool_plane.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast {
namespace {

// Elements that a window's mean counts along one axis. With padding, a window
// that hangs over the far edge (ceil_mode) counts up to the padding's end.
int64_t Counted(const WindowAxis& axis, int64_t window, bool include_pad) {
  if (!include_pad) return axis.EndTap(window) - axis.FirstTap(window);
  const int64_t start = axis.Start(window);
  return std::min(start + axis.kernel, axis.size + axis.padding) - start;
}

// Row by row, one tap at a time. kStride > 0 is w.stride, known to the
// compiler. `counts`: what each column of windows counts.
template <typename T, int kStride>
struct AvgPoolRowsBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, const PoolPlane* plane,
                                 const T* counts, bool include_pad) {
    const WindowAxis h = plane->h, w = plane->w;
    const int64_t step = kStride > 0 ? kStride : w.stride;
    for (int64_t i = 0; i < h.out; ++i, out += w.out) {
      for (int64_t j = 0; j < w.out; ++j) out[j] = 0;
      for (int64_t ky = h.FirstTap(i); ky < h.EndTap(i); ++ky) {
        const T* row = in + (h.Start(i) + ky) * w.size;
        for (int64_t kx = 0; kx < w.kernel; ++kx) {
          const int64_t e = w.EndWindow(kx);
          for (int64_t j = w.FirstWindow(kx); j < e; ++j) {
            out[j] += row[kx - w.padding + j * step];
          }
        }
      }
      const T rows = static_cast<T>(Counted(h, i, include_pad));
      for (int64_t j = 0; j < w.out; ++j) out[j] /= rows * counts[j];
    }
    return 0;
  }
};

// Any window.
template <typename T>
void AvgPoolPlane(const T* in, T* out, const PoolPlane& plane, const T* counts,
                  bool include_pad) {
  const WindowAxis &h = plane.h, &w = plane.w;
  for (int64_t i = 0; i < h.out; ++i) {
    const T rows = static_cast<T>(Counted(h, i, include_pad));
    for (int64_t j = 0; j < w.out; ++j) {
      T sum = 0;
      for (int64_t ky = h.FirstTap(i); ky < h.EndTap(i); ++ky) {
        const T* row = in + (h.Start(i) + ky) * w.size + w.Start(j);
        for (int64_t kx = w.FirstTap(j); kx < w.EndTap(j); ++kx) sum += row[kx];
      }
      *out++ = sum / (rows * counts[j]);
    }
  }
}

template <typename T>
void AvgPoolBackwardPlane(const T* grad, T* out, const PoolPlane& plane,
                          const T* counts, bool include_pad) {
  const WindowAxis &h = plane.h, &w = plane.w;
  std::memset(out, 0, plane.in_size() * sizeof(T));
  for (int64_t i = 0; i < h.out; ++i) {
    const T rows = static_cast<T>(Counted(h, i, include_pad));
    for (int64_t j = 0; j < w.out; ++j) {
      const T share = *grad++ / (rows * counts[j]);
      for (int64_t ky = h.FirstTap(i); ky < h.EndTap(i); ++ky) {
        T* row = out + (h.Start(i) + ky) * w.size + w.Start(j);
        for (int64_t kx = w.FirstTap(j); kx < w.EndTap(j); ++kx) {
          row[kx] += share;
        }
      }
    }
  }
}

template <typename T>
T* ColumnCounts(KernelContext& context, const WindowAxis& w, bool include_pad) {
  T* counts = static_cast<T*>(context.Scratch(w.out * sizeof(T)));
  if (counts == nullptr) return nullptr;
  for (int64_t j = 0; j < w.out; ++j) {
    counts[j] = static_cast<T>(Counted(w, j, include_pad));
  }
  return counts;
}

}  // namespace

HOLDFAST_CPU_KERNEL(avg_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  ReadWindow(attrs, /*dilated=*/false, &plane);
  const bool include_pad = attrs.Bool("count_include_pad");
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* counts = ColumnCounts<T>(context, plane.w, include_pad);
    if (counts == nullptr) {
      return absl::ResourceExhaustedError("[avg_pool2d] no scratch memory.");
    }
    const int64_t grain = std::max<int64_t>(1, 8192 / plane.out_size());
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const T* from = input.as<T>() + p * plane.in_size();
        T* to = outputs[0].as<T>() + p * plane.out_size();
        const PoolPlane* geometry = &plane;
        if (plane.w.kernel > 16) {
          AvgPoolPlane(from, to, plane, counts, include_pad);
        } else if (plane.w.stride == 1) {
          Vectorised<AvgPoolRowsBody<T, 1>>(from, to, geometry, counts,
                                            include_pad);
        } else if (plane.w.stride == 2) {
          Vectorised<AvgPoolRowsBody<T, 2>>(from, to, geometry, counts,
                                            include_pad);
        } else {
          Vectorised<AvgPoolRowsBody<T, 0>>(from, to, geometry, counts,
                                            include_pad);
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
  const bool include_pad = attrs.Bool("count_include_pad");
  TensorSpec spec;
  TensorView grad;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &grad);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* counts = ColumnCounts<T>(context, plane.w, include_pad);
    if (counts == nullptr) {
      return absl::ResourceExhaustedError(
          "[avg_pool2d_backward] no scratch memory.");
    }
    const int64_t grain = std::max<int64_t>(1, 8192 / plane.in_size());
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        AvgPoolBackwardPlane(grad.as<T>() + p * plane.out_size(),
                             outputs[0].as<T>() + p * plane.in_size(), plane,
                             counts, include_pad);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast
