// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// UserCode: code of the program's own that takes part in a backward: a function
// with its own gradient, or a hook that sees a gradient pass. The engine is on
// the server; it asks, and the thread that called backward runs the code.
// Thread-safety: Run is called by one thread at a time, the destructor by any,
// also while the session's lock is held: it must not wait.
#ifndef HOLDFAST_CLIENT_USER_CODE_H_
#define HOLDFAST_CLIENT_USER_CODE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/ref_counted.h"

namespace holdfast::client {

class TensorState;

class UserCode {
 public:
  virtual ~UserCode() = default;

  // A function: `gradients` of its outputs, null for zero, and `results` one
  // per input, null for none. A hook: one gradient, and one result, null to
  // leave it. An error ends the backward. `create_graph`: what runs here is to
  // be differentiated itself. May use the session, and start backwards.
  virtual absl::Status Run(absl::Span<const RefPtr<TensorState>> gradients,
                           bool create_graph,
                           std::vector<RefPtr<TensorState>>* results) = 0;
  // Of a function: what grad_fn is called.
  virtual std::string name() const = 0;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_USER_CODE_H_
