// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of indexing with several index tensors. Reading and adding there
// are each other's adjoint.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// x[indices], where the node's index tensors start at input `first`.
Value IndexAt(GradContext& c, const Value& x, int first) {
  Values inputs{x};
  for (int i = first; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  const Values outputs =
      c.CallAll(OpId::index, inputs, {{"dims", c.attrs().Get("dims")}});
  return outputs.empty() ? nullptr : outputs[0];
}

// A copy of x with values at (added to) the indices.
Value PutAt(GradContext& c, const Value& x, const Value& values, int first,
            bool accumulate) {
  Values inputs{x, values};
  for (int i = first; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  const Values outputs =
      c.CallAll(OpId::index_put, inputs,
                {{"dims", c.attrs().Get("dims")}, {"accumulate", accumulate}});
  return outputs.empty() ? nullptr : outputs[0];
}

}  // namespace

// g added into zeros at the indices
HOLDFAST_GRAD(index, kAllInputs & ~Bit(0)) {
  c.Set(0, PutAt(c, Zeros(c, c.input_spec(0)), c.grad(), 1, true));
}

// g (with zeros at the indices, unless they were added to), g[indices]
HOLDFAST_GRAD(index_put, kAllInputs & ~(Bit(0) | Bit(1))) {
  if (c.needs(0)) {
    const TensorSpec zero = ContiguousSpec(c.input_spec(0).dtype, {});
    c.Set(0, c.attrs().Bool("accumulate")
                 ? c.grad()
                 : PutAt(c, c.grad(), Zeros(c, zero), 2, false));
  }
  if (c.needs(1)) SetBroadcast(c, 1, IndexAt(c, c.grad(), 2));
}

}  // namespace holdfast
