// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// adaptive_max_pool2d: windows that cover the plane, as many as the output has
// elements. Its gradient is max_pool2d's.
#include <limits>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/pool_plane.h"

namespace holdfast::cpu {
namespace {

// Window i of an axis spans [Begin(i), Begin's ceiling of i + 1).
int64_t WindowBegin(const WindowAxis& axis, int64_t i) {
  return i * axis.size / axis.out;
}
int64_t WindowEnd(const WindowAxis& axis, int64_t i) {
  return ((i + 1) * axis.size + axis.out - 1) / axis.out;
}

template <typename T>
void MaxOfWindow(const PoolPlane& plane, const T* in, int64_t i, int64_t j,
                 T* out, int64_t* index) {
  const int64_t x_begin = WindowBegin(plane.w, j);
  const int64_t x_end = WindowEnd(plane.w, j);
  const int64_t y_end = WindowEnd(plane.h, i);
  T max = -std::numeric_limits<T>::infinity();
  int64_t at = WindowBegin(plane.h, i) * plane.w.size + x_begin;
  for (int64_t y = WindowBegin(plane.h, i); y < y_end; ++y) {
    for (int64_t x = x_begin; x < x_end; ++x) {
      const T value = in[y * plane.w.size + x];
      // A later NaN takes the place of an earlier one, as in PyTorch.
      if (!(value > max) && value == value) continue;
      max = value;
      at = y * plane.w.size + x;
    }
  }
  *out = max;
  *index = at;
}

}  // namespace

HOLDFAST_CPU_KERNEL(adaptive_max_pool2d) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const PoolPlane plane = PlaneSizes(inputs[0].spec->shape, out.shape);
  TensorSpec spec;
  TensorView input;
  absl::Status s = MakeContiguous(context, inputs[0], out.dtype, &spec, &input);
  if (!s.ok()) return s;
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t work = std::max(plane.in_size(), plane.out_size());
    const int64_t grain = std::max<int64_t>(1, 8192 / work);
    ParallelFor(context, plane.planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const T* from = input.as<T>() + p * plane.in_size();
        T* to = outputs[0].as<T>() + p * plane.out_size();
        int64_t* at = outputs[1].as<int64_t>() + p * plane.out_size();
        for (int64_t i = 0; i < plane.h.out; ++i) {
          for (int64_t j = 0; j < plane.w.out; ++j) {
            MaxOfWindow<T>(plane, from, i, j, to++, at++);
          }
        }
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
