// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/elementwise.h"

namespace holdfast {

#define HOLDFAST_UNARY_KERNEL(name, types, expression)                   \
  HOLDFAST_CPU_KERNEL(name) {                                            \
    return RunUnary(kUnaryTable<elementwise::op::name>, context, inputs, \
                    outputs);                                            \
  }
HOLDFAST_UNARY_OPS(HOLDFAST_UNARY_KERNEL)
HOLDFAST_UNARY_PREDICATES(HOLDFAST_UNARY_KERNEL)
#undef HOLDFAST_UNARY_KERNEL

}  // namespace holdfast
