// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient of a recurrent layer, once: steps are inside of the kernel, where no
// rule sees them. The cells (LSTMCell, ...) are differentiable any number of
// times.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {

HOLDFAST_GRAD(rnn_layer, Bit(1) | Bit(2) | Bit(3) | Bit(4),
              Bit(0) | Bit(3) | Bit(4)) {
  const bool lstm = c.attrs().Str("mode") == "lstm";
  if (c.create_graph()) {
    c.Fail(absl::UnimplementedError(
        "the gradient of a recurrent layer is not differentiable; build it of "
        "LSTMCell, GRUCell or RNNCell to differentiate it twice"));
    return;
  }
  const Value cell_grad = lstm ? c.grad(2) : Value();
  if (!c.grad(0) && !c.grad(1) && !cell_grad) return;
  const Value inputs[] = {c.grad(0),   c.grad(1),  cell_grad,  c.input(1),
                          c.input(2),  c.input(3), c.input(4), c.output(0),
                          c.output(3), c.output(4)};
  const Values grads = c.CallAll(
      OpId::rnn_layer_backward, inputs,
      {{"mode", c.attrs().Get("mode")}, {"reverse", c.attrs().Get("reverse")}});
  // input_gates, h0, c0, weight, bias
  if (c.needs(0)) c.Set(0, grads[0]);
  if (c.needs(2)) c.Set(2, grads[3]);
  if (c.needs(3)) c.Set(3, grads[4]);
  if (c.needs(4)) c.Set(4, grads[1]);
  if (c.needs(5)) c.Set(5, grads[2]);
}

}  // namespace holdfast
