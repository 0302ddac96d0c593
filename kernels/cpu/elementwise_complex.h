// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels of real and complex numbers share about the latter.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_ELEMENTWISE_COMPLEX_H_
#define HOLDFAST_KERNELS_CPU_ELEMENTWISE_COMPLEX_H_

#include "kernels/kernel.h"

namespace holdfast::cpu {

// abs of a complex view into a real one of the same shape.
void RunComplexAbs(const KernelContext& context, const TensorView& in,
                   const TensorView& out);

// A complex view as its real and imaginary parts, in a last dimension of 2.
// `spec` is filled in and must outlive the result.
TensorView PartsOf(const TensorView& view, TensorSpec* spec);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_ELEMENTWISE_COMPLEX_H_
