// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// im2col, which lays the windows of an image out as columns, and its adjoint
// col2im. Planes (one channel of one image) are independent of each other, and
// so are im2col's rows (one tap of one plane).
#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/window_axis.h"

namespace holdfast::cpu {
namespace {

struct Windows {
  WindowAxis h, w;

  int64_t plane() const { return h.size * w.size; }
  int64_t taps() const { return h.kernel * w.kernel; }
  int64_t columns() const { return h.out * w.out; }
};

// Images [N,C,H,W] of shape `image`.
Windows ReadWindows(const Attrs& attrs, absl::Span<const int64_t> image) {
  return {UnfoldAxis(attrs, image, 0), UnfoldAxis(attrs, image, 1)};
}

// Calls visit(row of windows, first, end, image offset of window `first`) for
// the windows whose tap (ky, kx) lies inside the image.
template <typename Visit>
void ForEachRow(const Windows& s, int64_t ky, int64_t kx, Visit visit) {
  const int64_t first = s.w.FirstWindow(kx);
  const int64_t end = std::max(first, s.w.EndWindow(kx));
  for (int64_t i = 0; i < s.h.out; ++i) {
    const int64_t y = s.h.Start(i) + ky * s.h.dilation;
    const bool inside = y >= 0 && y < s.h.size && first < end;
    visit(i, inside ? first : s.w.out, inside ? end : s.w.out,
          inside ? y * s.w.size + s.w.Start(first) + kx * s.w.dilation : 0);
  }
}

template <typename U>
void UnfoldTap(const Windows& s, const U* image, int64_t tap, U* columns) {
  ForEachRow(s, tap / s.w.kernel, tap % s.w.kernel,
             [&](int64_t i, int64_t first, int64_t end, int64_t at) {
               U* to = columns + i * s.w.out;
               std::fill(to, to + first, U{});
               if (s.w.stride == 1) {
                 std::copy(image + at, image + at + (end - first), to + first);
               } else {
                 for (int64_t j = first; j < end; ++j, at += s.w.stride) {
                   to[j] = image[at];
                 }
               }
               std::fill(to + end, to + s.w.out, U{});
             });
}

template <typename T>
void FoldPlane(const Windows& s, const T* columns, T* image) {
  std::fill(image, image + s.plane(), T{0});
  for (int64_t tap = 0; tap < s.taps(); ++tap, columns += s.columns()) {
    ForEachRow(s, tap / s.w.kernel, tap % s.w.kernel,
               [&](int64_t i, int64_t first, int64_t end, int64_t at) {
                 const T* from = columns + i * s.w.out;
                 const int64_t stride = s.w.stride;
                 for (int64_t j = first; j < end; ++j) {
                   image[at + (j - first) * stride] += from[j];
                 }
               });
  }
}

}  // namespace

HOLDFAST_CPU_KERNEL(im2col) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  const Windows windows = ReadWindows(attrs, inputs[0].spec->shape);
  const int64_t rows = out.shape[0] * out.shape[1];
  return DispatchItem(out.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const int64_t grain = std::max<int64_t>(1, 16384 / windows.columns());
    ParallelFor(context, rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t plane = row / windows.taps();
        UnfoldTap<U>(windows, input.as<U>() + plane * windows.plane(),
                     row % windows.taps(),
                     outputs[0].as<U>() + row * windows.columns());
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(col2im) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  const Windows windows = ReadWindows(attrs, out.shape);
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t per_plane = windows.taps() * windows.columns();
    const int64_t grain = std::max<int64_t>(1, 16384 / per_plane);
    ParallelFor(context, out.shape[0] * out.shape[1], grain,
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    FoldPlane<T>(windows, input.as<T>() + p * per_plane,
                                 outputs[0].as<T>() + p * windows.plane());
                  }
                });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
