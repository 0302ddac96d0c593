// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sorting and running sums over whole arrays: CUB on the device, the standard
// library on the host. One compilation unit has them all (sort_device.cc).
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_SORT_H_
#define HOLDFAST_KERNELS_CUDA_SORT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// sorted = keys in ascending order.
absl::Status SortKeys(KernelContext& context, const uint64_t* keys,
                      uint64_t* sorted, int64_t n);

// The same for each of `rows` rows of n keys, with the numbers that go with
// them; stable. Neither output overlaps an input.
absl::Status SortRows(KernelContext& context, int64_t rows, int64_t n,
                      const uint64_t* keys, uint64_t* sorted_keys,
                      const int64_t* numbers, int64_t* sorted_numbers);

// sums[i] = counts[0] + ... + counts[i - 1].
absl::Status ExclusiveSum(KernelContext& context, const int64_t* counts,
                          int64_t* sums, int64_t n);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_SORT_H_
