// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient of connectionist temporal classification. PyTorch's: it holds for
// log_probs that log_softmax made, and cannot be differentiated again.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {

HOLDFAST_GRAD(ctc_loss, Bit(0) | Bit(1) | Bit(2) | Bit(3), Bit(0) | Bit(1)) {
  if (!c.grad() || !c.needs(0)) return;
  if (c.create_graph()) {
    c.Fail(absl::UnimplementedError(
        "derivative for ctc_loss_backward is not implemented"));
    return;
  }
  c.Set(0, c.Call(OpId::ctc_loss_backward,
                  {c.grad(), c.input(0), c.input(1), c.input(2), c.input(3),
                   c.output(0), c.output(1)},
                  {{"blank", c.attrs().Get("blank")}}));
}

}  // namespace holdfast
