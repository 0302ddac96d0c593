// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel that knows the compute types only on tensors of 16-bit floats
// and narrow integers: operands are converted into scratch memory, and what the
// kernel wrote is converted back. For every device.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_WIDENED_H_
#define HOLDFAST_KERNELS_WIDENED_H_

#include "kernels/kernel.h"

namespace holdfast {

struct OpSchema;  // ops/op_schema.h

// Whether the op writes input number `input` of `inputs`: one of a `!`
// parameter.
bool WritesInput(const OpSchema& schema, size_t input, size_t inputs);

// True if any operand is of a type that kernels without kAnyDType do not know.
bool NeedsWidening(absl::Span<const TensorView> inputs,
                   absl::Span<const TensorView> outputs);

// Copies and converts between views of one shape, as the device does it.
using CopyFn = absl::Status (*)(KernelContext& context, const TensorView& from,
                                const TensorView& to);

absl::Status RunWidened(KernelFn kernel, CopyFn copy, KernelContext& context,
                        const Attrs& attrs, absl::Span<const TensorView> inputs,
                        absl::Span<const TensorView> outputs);

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_WIDENED_H_
