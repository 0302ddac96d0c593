// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows for an op's integer result from what is known of its inputs.
// Never more than is true: a wrong bound would let a kernel read where nothing
// is. Thread-safety: reentrant.
#ifndef HOLDFAST_SERVER_EXEC_BOUNDS_OF_OP_H_
#define HOLDFAST_SERVER_EXEC_BOUNDS_OF_OP_H_

#include "absl/types/span.h"
#include "autograd/variable.h"
#include "ops/attrs.h"
#include "server/exec/integer_bounds.h"

namespace holdfast {

// Of tensor input `slot`, or of the number passed in its place.
KnownBounds BoundsOfInput(const Attrs& attrs, absl::Span<const Value> inputs,
                          int slot);

// Of output `index`, which has the spec `out`. For ops that write an input of
// theirs: of what they write there.
KnownBounds BoundsOfOutput(const Attrs& attrs, absl::Span<const Value> inputs,
                           int index, const TensorSpec& out);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_BOUNDS_OF_OP_H_
