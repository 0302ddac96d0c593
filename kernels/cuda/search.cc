// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// searchsorted: binary search of values among sorted boundaries.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

// The number of boundaries below x (or not above it, to the right). Always in
// [0, n], whatever the boundaries' order. NaN is above all.
template <typename T>
HOLDFAST_HD int64_t Search(const T* sorted, int64_t n, T x, bool right) {
  int64_t begin = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const T boundary = LoadStored<T>(sorted, begin + half);
    const bool after = right ? !(boundary > x) : !(boundary >= x);
    begin = after ? begin + half + 1 : begin;
    n = after ? n - half - 1 : half;
  }
  return begin;
}

template <typename T>
absl::Status SearchAll(KernelContext& context, const T* sorted, int64_t n,
                       bool shared, const T* values, int64_t per_row,
                       bool right, const TensorView& output) {
  const Operand out(output);
  return ForEach(context, output.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    const T* const row = shared ? sorted : sorted + i / per_row * n;
    out.Store(i, Search<T>(row, n, LoadStored<T>(values, i), right));
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(searchsorted) {
  const int64_t count = outputs[0].spec->numel();
  if (count == 0) return absl::OkStatus();
  const TensorSpec& boundaries = *inputs[0].spec;
  TensorSpec specs[2];
  TensorView views[2];
  for (int i = 0; i < 2; ++i) {
    absl::Status s = MakeContiguous(context, inputs[i], boundaries.dtype,
                                    &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  const bool shared = boundaries.rank() == 1;
  const int64_t per_row = shared ? count : inputs[1].spec->shape.back();
  return DispatchDType(boundaries.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return SearchAll<T>(context, views[0].as<T>(), boundaries.shape.back(),
                        shared, views[1].as<T>(), per_row, attrs.Bool("right"),
                        outputs[0]);
  });
}

}  // namespace holdfast::cuda
