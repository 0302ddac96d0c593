// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CheckSteps: refuses ops that would take too long by what is known before
// they run. The clock (session/registry_ops.cc) stops the others.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_OP_STEPS_H_
#define HOLDFAST_SERVER_EXEC_OP_STEPS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/infer.h"
#include "ops/op_schema.h"
#include "server/exec/tensor.h"

namespace holdfast {

// FailedPrecondition if the elements of inputs and outputs are many more than
// the memory behind them, as those of expanded tensors, and so many that they
// would take longer than `most_seconds`. What memory justifies is never
// refused.
absl::Status CheckSteps(const OpSchema& schema, absl::Span<const Value> inputs,
                        const OutputSpecs& outputs, double most_seconds);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_OP_STEPS_H_
