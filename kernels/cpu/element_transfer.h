// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves runs of elements between a strided view and contiguous memory, with
// conversion: the one place where a loop exists per pair of types.
// Thread-safety: pure functions over caller-owned memory.
#ifndef HOLDFAST_KERNELS_CPU_ELEMENT_TRANSFER_H_
#define HOLDFAST_KERNELS_CPU_ELEMENT_TRANSFER_H_

#include <cstdint>

#include "ops/dtype.h"

namespace holdfast::cpu {

// A view in the order of its dimensions; counts elements.
struct StridedRuns {
  int rank;
  const int64_t* sizes;
  const int64_t* strides;
};

// contiguous[i] = view element begin + i, for i < n.
void GatherElements(DType view_type, const void* view, const StridedRuns& runs,
                    int64_t begin, int64_t n, DType contiguous_type,
                    void* contiguous);
// View element begin + i = contiguous[i], for i < n.
void ScatterElements(DType contiguous_type, const void* contiguous,
                     DType view_type, void* view, const StridedRuns& runs,
                     int64_t begin, int64_t n);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_ELEMENT_TRANSFER_H_
