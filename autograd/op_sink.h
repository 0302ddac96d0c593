// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpSink: where gradient rules send their ops. The server's executor is one;
// a recording sink serves unit tests.
// Thread-safety: as the implementation says; the engine uses one thread.
#ifndef HOLDFAST_AUTOGRAD_OP_SINK_H_
#define HOLDFAST_AUTOGRAD_OP_SINK_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/variable.h"
#include "ops/attrs.h"

namespace holdfast {

using Values = absl::InlinedVector<Value, 2>;

class OpSink {
 public:
  virtual ~OpSink() = default;

  // Runs one op and returns its outputs. `record`: put it on the tape if an
  // input requires a gradient. With `inplace` the result is inputs[0] itself.
  // Null values are absent inputs. Takes no ownership beyond the call.
  virtual absl::StatusOr<Values> Emit(const Attrs& attrs,
                                      absl::Span<const Value> inputs,
                                      bool record, bool inplace) = 0;

  // Like Emit, unrecorded, of an elementwise op whose inputs[0] nobody reads
  // afterwards: where the caller's is the only reference to that memory, the
  // result may take it.
  virtual absl::StatusOr<Values> EmitOver(const Attrs& attrs,
                                          absl::Span<const Value> inputs) {
    return Emit(attrs, inputs, /*record=*/false, /*inplace=*/false);
  }

  // Whether any element is NaN. Waits for the value.
  virtual absl::StatusOr<bool> HasNaN(const Value& value) = 0;

  // Another variable over the same storage and spec with no history.
  virtual Value Alias(const Value& value) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_OP_SINK_H_
