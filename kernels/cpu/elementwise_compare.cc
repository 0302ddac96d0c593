// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/elementwise.h"

namespace holdfast::cpu {

#define HOLDFAST_PREDICATE_KERNEL(name, types, expression)                \
  HOLDFAST_CPU_KERNEL(name) {                                             \
    return RunBinary(kBinaryTable<elementwise::op::name>, context, attrs, \
                     inputs, outputs);                                    \
  }
HOLDFAST_BINARY_PREDICATES(HOLDFAST_PREDICATE_KERNEL)
#undef HOLDFAST_PREDICATE_KERNEL

}  // namespace holdfast::cpu
