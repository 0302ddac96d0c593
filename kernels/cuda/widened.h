// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel that knows the compute types only on tensors of 16-bit floats
// and narrow integers: operands are converted into scratch memory, and what the
// kernel wrote is converted back.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_WIDENED_H_
#define HOLDFAST_KERNELS_CUDA_WIDENED_H_

#include "kernels/kernel.h"

namespace holdfast {

// True if any operand is of a type that kernels without kAnyDType do not know.
bool CudaNeedsWidening(absl::Span<const TensorView> inputs,
                       absl::Span<const TensorView> outputs);

absl::Status RunCudaWidened(KernelFn kernel, KernelContext& context,
                            const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<const TensorView> outputs);

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_WIDENED_H_
