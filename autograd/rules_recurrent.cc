// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient of a recurrent layer, once: steps are inside of the kernel, where no
// rule sees them. The cells (LSTMCell, ...) are differentiable any number of
// times.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {

HOLDFAST_GRAD(rnn_layer,
              Bit(0) | Bit(1) | Bit(2) | Bit(3) | Bit(4) | Bit(5) | Bit(6) |
                  Bit(7),
              Bit(0) | Bit(3)) {
  const bool lstm = c.attrs().Str("mode") == "lstm";
  if (c.create_graph()) {
    c.Fail(absl::UnimplementedError(
        "the gradient of a recurrent layer is not differentiable; build it of "
        "LSTMCell, GRUCell or RNNCell to differentiate it twice"));
    return;
  }
  const Value cell_grad = lstm ? c.grad(2) : Value();
  if (!c.grad(0) && !c.grad(1) && !cell_grad) return;
  Value inputs[] = {c.grad(0),  c.grad(1),   cell_grad,  c.input(0), c.input(1),
                    c.input(2), c.input(3),  c.input(4), c.input(5), c.input(6),
                    c.input(7), c.output(0), c.output(3)};
  const bool weights = c.needs(4) || c.needs(5) || c.needs(6) || c.needs(7);
  const int64_t wanted = (c.needs(0) ? 1 : 0) | (weights ? 2 : 0);
  const Values grads = c.CallAll(OpId::rnn_layer_backward, inputs,
                                 {{"mode", c.attrs().Get("mode")},
                                  {"reverse", c.attrs().Get("reverse")},
                                  {"wanted", wanted}});
  // input, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh
  constexpr int kOf[] = {0, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 7; ++i) {
    if (c.needs(kOf[i])) c.Set(kOf[i], grads[i]);
  }
}

}  // namespace holdfast
