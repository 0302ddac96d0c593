// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The linear map of `linear`, for kernels of layers.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_LINEAR_H_
#define HOLDFAST_KERNELS_CPU_LINEAR_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cpu {

// output = input weight^T + bias; `bias` may be absent.
absl::Status Linear(KernelContext& context, const TensorView& input,
                    const TensorView& weight, const TensorView& bias,
                    const TensorView& output);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_LINEAR_H_
