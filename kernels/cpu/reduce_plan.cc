// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce_plan.h"

#include <utility>

namespace holdfast::cpu {
namespace {

struct Loop {
  int64_t size, stride, out_stride;
};
using Loops = absl::InlinedVector<Loop, 6>;

// Merges neighbours that step through memory as one loop would.
void Coalesce(Loops* loops) {
  size_t n = 0;
  for (const Loop& inner : *loops) {
    if (n > 0) {
      Loop& outer = (*loops)[n - 1];
      if (outer.stride == inner.stride * inner.size &&
          outer.out_stride == inner.out_stride * inner.size) {
        outer = {outer.size * inner.size, inner.stride, inner.out_stride};
        continue;
      }
    }
    (*loops)[n++] = inner;
  }
  loops->resize(n);
}

}  // namespace

absl::Status MakeReducePlan(const TensorSpec& input,
                            absl::Span<const int64_t> dims, ReducePlan* plan) {
  const int rank = input.rank();
  uint64_t mask = dims.empty() ? ~uint64_t{0} : 0;
  for (int64_t dim : dims) {
    absl::StatusOr<int> d = NormalizeDim(dim, rank);
    if (!d.ok()) return d.status();
    mask |= uint64_t{1} << *d;
  }
  Loops kept, reduced;
  int64_t out_stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t size = input.shape[d];
    if (mask >> d & 1) {
      plan->count *= size;
      if (size != 1) reduced.push_back({size, input.strides[d], 0});
    } else {
      plan->outputs *= size;
      if (size != 1) kept.push_back({size, input.strides[d], out_stride});
      out_stride *= size;
    }
  }
  std::reverse(kept.begin(), kept.end());
  // The order in which elements are taken in is free: smallest stride inside.
  std::sort(reduced.begin(), reduced.end(),
            [](const Loop& a, const Loop& b) { return a.stride > b.stride; });
  Coalesce(&kept);
  Coalesce(&reduced);
  if (kept.empty()) kept.push_back({1, 1, 1});
  if (reduced.empty()) reduced.push_back({1, 1, 0});
  for (Loop& loop : kept) {
    if (loop.stride == 1) std::swap(loop, kept.back());
  }
  for (const Loop& loop : kept) {
    plan->kept_shape.push_back(loop.size);
    plan->kept_strides.push_back(loop.stride);
    plan->kept_out_strides.push_back(loop.out_stride);
  }
  for (const Loop& loop : reduced) {
    plan->reduced_shape.push_back(loop.size);
    plan->reduced_strides.push_back(loop.stride);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
