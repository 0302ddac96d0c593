// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient of attention: y = p v, p = softmax(z), z = scale q k', l the
// logarithm of the sums of exp(z).
#include <limits>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// p, of plain ops.
Value Weights(GradContext& c, const Value& q, const Value& k) {
  Value z =
      Mul(c, MatMul(c, q, MatrixTranspose(c, k)), c.attrs().Float("scale"));
  if (z && c.attrs().Bool("causal")) {
    const Dims& shape = z->spec().shape;
    const Value ones = c.Call(OpId::full, {},
                              {{"size", Dims(shape.end() - 2, shape.end())},
                               {"fill_value", int64_t{1}},
                               {"dtype", DType::kFloat32}});
    const Value seen =
        Binary(c, OpId::gt, c.Call(OpId::tril, {ones}), int64_t{0});
    z = Where(c, seen, z, -std::numeric_limits<double>::infinity());
  }
  if (!z) return nullptr;
  return c.Call(OpId::softmax, {z}, {{"dim", int64_t{-1}}});
}

// The same as attention_backward, differentiable, and for gradients of l, too.
void Composed(GradContext& c, const Value& q, const Value& k, const Value& v) {
  const Value p = Weights(c, q, k);
  if (!p) return;
  Value z_grad;
  if (c.grad(0)) {
    if (c.needs(2)) c.Set(2, MatMul(c, MatrixTranspose(c, p), c.grad(0)));
    z_grad = c.Call(OpId::softmax_backward,
                    {MatMul(c, c.grad(0), MatrixTranspose(c, v)), p},
                    {{"dim", int64_t{-1}}});
  }
  if (c.grad(1)) {
    Dims shape = c.grad(1)->spec().shape;
    shape.push_back(1);
    const Value of_l = Mul(c, p, CastLike(c, ViewAs(c, c.grad(1), shape), p));
    z_grad = z_grad ? Add(c, z_grad, of_l) : of_l;
  }
  if (!z_grad) return;
  const Value scaled = Mul(c, z_grad, c.attrs().Float("scale"));
  if (c.needs(0)) c.Set(0, MatMul(c, scaled, k));
  if (c.needs(1)) c.Set(1, MatMul(c, MatrixTranspose(c, scaled), q));
}

}  // namespace

// With d the gradient of y: v: p' d; z: p (d v' - sum(d y)); q: scale z k;
// k: scale z' q
HOLDFAST_GRAD(attention, Bit(0) | Bit(1) | Bit(2), Bit(0) | Bit(1)) {
  if (!c.grad(0) && !c.grad(1)) return;
  const Value q = c.input(0), k = c.input(1), v = c.input(2);
  if (c.create_graph() || c.grad(1)) return Composed(c, q, k, v);
  const Value inputs[] = {c.grad(0), q, k, v, c.output(0), c.output(1)};
  const Values grads = c.CallAll(
      OpId::attention_backward, inputs,
      {{"causal", c.attrs().Get("causal")}, {"scale", c.attrs().Get("scale")}});
  for (int i = 0; i < 3; ++i) {
    if (c.needs(i)) c.Set(i, grads[i]);
  }
}

}  // namespace holdfast
