// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// searchsorted: binary search of values among sorted boundaries.
#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

// The number of boundaries below x (or not above it, to the right). Always in
// [0, n], whatever the boundaries' order. NaN is above all.
template <typename T, bool kRight>
int64_t Search(const T* sorted, int64_t n, T x) {
  int64_t begin = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const T boundary = LoadElement(sorted + begin + half);
    const bool after = kRight ? !(boundary > x) : !(boundary >= x);
    begin = after ? begin + half + 1 : begin;
    n = after ? n - half - 1 : half;
  }
  return begin;
}

template <typename T, typename I, bool kRight>
void SearchAll(KernelContext& context, const T* sorted, int64_t n, bool shared,
               const T* values, int64_t per_row, I* out, int64_t count) {
  ParallelFor(context, count, 1024, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const T* row = shared ? sorted : sorted + i / per_row * n;
      out[i] =
          static_cast<I>(Search<T, kRight>(row, n, LoadElement(values + i)));
    }
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(searchsorted) {
  const int64_t count = outputs[0].spec->numel();
  if (count == 0) return absl::OkStatus();
  const TensorSpec& boundaries = *inputs[0].spec;
  TensorSpec sorted_spec, values_spec;
  TensorView sorted, values;
  absl::Status s = MakeContiguous(context, inputs[0], boundaries.dtype,
                                  &sorted_spec, &sorted);
  if (!s.ok()) return s;
  s = MakeContiguous(context, inputs[1], boundaries.dtype, &values_spec,
                     &values);
  if (!s.ok()) return s;
  const int64_t n = boundaries.shape.back();
  const bool shared = boundaries.rank() == 1;
  const int64_t per_row = shared ? count : inputs[1].spec->shape.back();
  const bool right = attrs.Bool("right");
  return DispatchDType(boundaries.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return DispatchIndex(
        outputs[0].spec->dtype, [&](auto index) -> absl::Status {
          using I = typename decltype(index)::type;
          const auto search =
              right ? &SearchAll<T, I, true> : &SearchAll<T, I, false>;
          search(context, sorted.as<T>(), n, shared, values.as<T>(), per_row,
                 outputs[0].as<I>(), count);
          return absl::OkStatus();
        });
  });
}

}  // namespace holdfast::cpu
