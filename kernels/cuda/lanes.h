// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ForEachInLanes: a loop whose steps may meet at one element of the result, as
// sums at given places do. On many threads they come in any order, and the sums
// of floats have other bits each time. Where the program asks for results that
// repeat (Numerics::deterministic), steps that may meet are one thread's, in
// order: slower, the more of them there are.
// Thread-safety: as ForEach's.
#ifndef HOLDFAST_KERNELS_CUDA_LANES_H_
#define HOLDFAST_KERNELS_CUDA_LANES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/launch.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

// i = (o * steps + s) * inner + n. What steps of one (o, n) write no other lane
// writes.
struct Lanes {
  int64_t outer = 1, steps = 1, inner = 1;

  int64_t numel() const { return outer * steps * inner; }
};

// A lane for each place beside `dim` in `shape`; one for all if there is no
// such dimension.
inline Lanes LanesAlong(absl::Span<const int64_t> shape, int dim) {
  Lanes lanes;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    (d < dim ? lanes.outer : d == dim ? lanes.steps : lanes.inner) *= shape[d];
  }
  return lanes;
}

template <typename F>
struct LaneInOrder {
  Lanes lanes;
  F f;

  HOLDFAST_HD void operator()(int64_t lane) const {
    const int64_t o = lane / lanes.inner, n = lane % lanes.inner;
    for (int64_t s = 0; s < lanes.steps; ++s) {
      f((o * lanes.steps + s) * lanes.inner + n);
    }
  }
};

// f(i), which must be fit for other threads at the elements that it writes.
template <typename F>
absl::Status ForEachInLanes(KernelContext& context, const Lanes& lanes, F f) {
  if (!Cuda(context).numerics.deterministic || lanes.steps <= 1) {
    return ForEach(context, lanes.numel(), f);
  }
  return ForEach(context, lanes.outer * lanes.inner, LaneInOrder<F>{lanes, f});
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_LANES_H_
