// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Linear systems, for every op that has some. Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_LINALG_SOLVE_H_
#define HOLDFAST_KERNELS_CUDA_LINALG_SOLVE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// out = a^-1 b for each n x n matrix of `a` and n x k matrix of `b`, all
// contiguous; `a` broadcasts to b's batch. Both are lost. `checked`: a singular
// matrix is an error (SingularMatrix), which is waited for; otherwise it leads
// to infinity and NaN. REQUIRES: no size of `a` is 0.
absl::Status SolveSystems(KernelContext& context, const TensorView& a,
                          const TensorView& b, bool checked,
                          const TensorView& out);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_LINALG_SOLVE_H_
