// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Several elementwise ops in one kernel: each thread carries its elements
// through all of them and stores every result, so that what one op gives the
// next is not loaded again. The results are those of the ops one by one: the
// same functors, in the same order, without multiply-adds across two of them.
// Thread-safety: pure functions, and a kernel function.
#ifndef HOLDFAST_KERNELS_CUDA_FUSED_CHAIN_H_
#define HOLDFAST_KERNELS_CUDA_FUSED_CHAIN_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/recorder.h"

namespace holdfast::cuda {

// How many of the requests, from the first on, are a chain: ops of
// elementwise.h over contiguous tensors of one size and type (float32, float16
// or bfloat16) and numbers, of which no two overlap by a part. 0 if the first
// is no such op.
size_t ChainLength(absl::Span<const LaunchRequest> requests);

// REQUIRES: ChainLength(requests) == requests.size() > 0.
absl::Status RunChain(KernelContext& context,
                      absl::Span<const LaunchRequest> requests);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_FUSED_CHAIN_H_
