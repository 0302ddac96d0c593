// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.h"

namespace holdfast::cuda {

#define HOLDFAST_PREDICATE_KERNEL(name, types, expression)          \
  HOLDFAST_CUDA_KERNEL(name) {                                      \
    return RunBinary<elementwise::op::name>(context, attrs, inputs, \
                                            outputs[0]);            \
  }
HOLDFAST_BINARY_PREDICATES(HOLDFAST_PREDICATE_KERNEL)
#undef HOLDFAST_PREDICATE_KERNEL

}  // namespace holdfast::cuda
