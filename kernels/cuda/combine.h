// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What groups of threads combine (Group::Reduce in group.h).
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_COMBINE_H_
#define HOLDFAST_KERNELS_CUDA_COMBINE_H_

#include "ops/host_device.h"

namespace holdfast::cuda {

// Passes over NaN, which reaches a softmax through the sum.
struct LargerOf {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

struct SumTwo {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_COMBINE_H_
