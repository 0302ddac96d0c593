// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// add, sub, mul and div along rows that are too short for a call each: with one
// number per row, as in x - x.mean(1, True), outer products and kron, or with
// one row for all, as in x + bias. Else such an operand would be written out to
// a buffer first, which costs as much as the op.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_ELEMENTWISE_ROWS_H_
#define HOLDFAST_KERNELS_CPU_ELEMENTWISE_ROWS_H_

#include "kernels/cpu/strided_loop.h"
#include "kernels/kernel.h"
#include "ops/dtype.h"
#include "ops/op_id.h"

namespace holdfast::cpu {

// Runs operand 0 = operand 1 `op` operand 2 of `walk`, all of type `type`;
// false, with nothing done, if op, type or layout are of another kind.
bool RunShortRows(OpId op, DType type, const KernelContext& context,
                  const StridedLoop& walk);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_ELEMENTWISE_ROWS_H_
