// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which checks of element values are answered by what is known of the inputs:
// the op then runs with Attrs::data_checked. Thread-safety: reentrant.
#ifndef HOLDFAST_SERVER_EXEC_DATA_CHECKS_H_
#define HOLDFAST_SERVER_EXEC_DATA_CHECKS_H_

#include "absl/types/span.h"
#include "autograd/variable.h"
#include "ops/attrs.h"

namespace holdfast {

// Whether all that the op would check of its elements is known to be right.
// False where nobody knows. REQUIRES: inference has passed the call.
bool DataKnownRight(const Attrs& attrs, absl::Span<const Value> inputs);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_DATA_CHECKS_H_
