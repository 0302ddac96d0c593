// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What normalisations add up. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_
#define HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_

#include <cstdint>

#include "ops/host_device.h"

namespace holdfast {

// Two sums at once.
struct TwoSums {
  double first, second;
};
struct AddSums {
  using Acc = TwoSums;
  static HOLDFAST_HD Acc Init() { return {0, 0}; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return {a.first + b.first, a.second + b.second};
  }
};

template <typename T>
HOLDFAST_HD T Factor(const T* weight, int64_t c) {
  return weight == nullptr ? T(1) : weight[c];
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_NORM_SUMS_H_
