// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of softmax, log_softmax and nll_loss. y is the output, g its
// gradient, sums run along dim; in the backward ops' own rules d is the
// gradient they were given, and g that of their result.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

Value SoftmaxBackward(GradContext& c, OpId op, const Value& grad,
                      const Value& output) {
  if (!grad || !output) return nullptr;
  return c.Call(op, {grad, output}, {{"dim", c.attrs().Get("dim")}});
}

// Sum along dim, kept at size 1.
Value SumAlong(GradContext& c, const Value& a) {
  if (!a || a->spec().rank() == 0) return a;
  return Sum(c, a, {DimAttr(c, a->spec().rank())}, /*keepdim=*/true);
}

}  // namespace

// y (g - sum(g y))
HOLDFAST_GRAD(softmax, 0, Bit(0)) {
  c.Set(0, SoftmaxBackward(c, OpId::softmax_backward, c.grad(), c.output()));
}

// g - exp(y) sum g
HOLDFAST_GRAD(log_softmax, 0, Bit(0)) {
  c.Set(0,
        SoftmaxBackward(c, OpId::log_softmax_backward, c.grad(), c.output()));
}

// r = y (d - sum(d y)), symmetric in d: to d: y (g - sum(g y));
// to y: g (d - sum(d y)) - d sum(g y)
HOLDFAST_GRAD(softmax_backward, Bit(0) | Bit(1), 0, Bit(0)) {
  const Value& g = c.grad();
  const Value y = c.input(1);
  if (c.needs(0)) {
    c.Set(0, SoftmaxBackward(c, OpId::softmax_backward, g, y));
  }
  if (c.needs(1)) {
    const Value d = c.input(0);
    const Value centred = Sub(c, d, SumAlong(c, Mul(c, d, y)));
    const Value rest = Mul(c, d, SumAlong(c, Mul(c, g, y)));
    c.Set(1, Sub(c, Mul(c, g, centred), rest));
  }
}

// r = d - exp(y) sum d: to d: g - sum(g exp(y)); to y: -g exp(y) sum d
HOLDFAST_GRAD(log_softmax_backward, Bit(0) | Bit(1), 0, Bit(0)) {
  const Value weighted = Mul(c, c.grad(), Unary(c, OpId::exp, c.input(1)));
  if (c.needs(0)) c.Set(0, Sub(c, c.grad(), SumAlong(c, weighted)));
  if (c.needs(1)) {
    c.Set(1, Neg(c, Mul(c, weighted, SumAlong(c, c.input(0)))));
  }
}

// x [N,C], target [N], weight [C] or none -> y [] or [N]
HOLDFAST_GRAD(nll_loss, Bit(1) | Bit(2), Bit(1)) {
  if (!c.grad() || !c.needs(0)) return;
  const Attrs& a = c.attrs();
  c.Set(0, c.Call(OpId::nll_loss_backward,
                  {c.grad(), c.input(1), c.input(2), c.output(1)},
                  {{"input_size", c.input_spec(0).shape},
                   {"reduction", a.Get("reduction")},
                   {"ignore_index", a.Get("ignore_index")}}));
}

// Linear in the gradient it is given, and nll_loss is its adjoint.
HOLDFAST_GRAD(nll_loss_backward, Bit(1) | Bit(2)) {
  if (!c.needs(0)) return;
  const Attrs& a = c.attrs();
  c.Set(0, c.Call(OpId::nll_loss, {c.grad(), c.input(1), c.input(2)},
                  {{"reduction", a.Get("reduction")},
                   {"ignore_index", a.Get("ignore_index")}}));
}

}  // namespace holdfast
