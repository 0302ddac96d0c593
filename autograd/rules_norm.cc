// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of the normalisations. With x' = (x - mean) rstd and h = g w:
//   input   rstd (h - mean(h) - x' mean(h x'))
//   weight  sum g x'
//   bias    sum g
// The fused backward ops compute all three at once. Where the gradient is
// itself recorded, the same formulas are emitted in plain ops, from the input
// on, so that they can be differentiated any number of times.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

Value Mean(GradContext& c, const Value& a, const Dims& dims) {
  if (!a) return nullptr;
  return c.Call(OpId::mean, {a}, {{"dim", dims}, {"keepdim", true}});
}

// What is left of normalising `x` over `dims`.
struct Normalized {
  Value value;  // x'
  Value rstd;
};

Normalized Normalize(GradContext& c, const Value& x, const Dims& dims,
                     double eps, bool center) {
  const Value centred = center ? Sub(c, x, Mean(c, x, dims)) : x;
  const Value var = Mean(c, Mul(c, centred, centred), dims);
  const Value rstd = Unary(c, OpId::rsqrt, Add(c, var, eps));
  return {Mul(c, centred, rstd), rstd};
}

Value InputGradient(GradContext& c, const Value& h, const Normalized& x,
                    const Dims& dims, bool center) {
  Value rest = Mul(c, x.value, Mean(c, Mul(c, h, x.value), dims));
  if (center) rest = Add(c, rest, Mean(c, h, dims));
  return Mul(c, x.rstd, Sub(c, h, rest));
}

// Sets the gradients of weight (input 1) and bias (input 2), which broadcast
// with the input as `shape`.
void SetAffine(GradContext& c, const Value& normalized, ShapeSpan shape) {
  if (c.needs(1)) {
    const Value grad = SumTo(c, Mul(c, c.grad(), normalized), shape);
    c.Set(1, ViewAs(c, grad, c.input_spec(1).shape));
  }
  if (c.needs(2)) {
    c.Set(2, ViewAs(c, SumTo(c, c.grad(), shape), c.input_spec(2).shape));
  }
}

// g w
Value Weighted(GradContext& c, const Value& weight, ShapeSpan shape) {
  if (!weight) return c.grad();
  return Mul(c, c.grad(), ViewAs(c, weight, shape));
}

// [C] among the dimensions of [N, C, ...].
Dims ChannelShape(const TensorSpec& input) {
  Dims shape(input.rank(), 1);
  shape[1] = input.shape[1];
  return shape;
}

void SetAll(GradContext& c, const Values& grads) {
  for (int i = 0; i < 3; ++i) {
    if (c.needs(i)) c.Set(i, grads[i]);
  }
}

}  // namespace

HOLDFAST_GRAD(batch_norm, Bit(0) | Bit(1) | Bit(3) | Bit(4), Bit(1) | Bit(2)) {
  if (!c.grad()) return;
  const Value x = c.input(0), weight = c.input(1);
  const Value running_mean = c.input(3), running_var = c.input(4);
  const double eps = c.attrs().Float("eps");
  const bool training = !running_mean;
  if (!x) return;
  if (!c.create_graph()) {
    const Value inputs[] = {c.grad(), x, weight, c.output(1), c.output(2)};
    SetAll(c, c.CallAll(OpId::batch_norm_backward, inputs,
                        {{"eps", eps}, {"training", training}}));
    return;
  }
  const Dims shape = ChannelShape(x->spec());
  const Value h = Weighted(c, weight, shape);
  Dims dims = {0};
  for (int d = 2; d < x->spec().rank(); ++d) dims.push_back(d);
  Normalized normal;
  if (training) {
    normal = Normalize(c, x, dims, eps, /*center=*/true);
    if (c.needs(0)) c.Set(0, InputGradient(c, h, normal, dims, true));
  } else {
    const Value var = ViewAs(c, running_var, shape);
    normal.rstd = Unary(c, OpId::rsqrt, Add(c, var, eps));
    normal.value =
        Mul(c, Sub(c, x, ViewAs(c, running_mean, shape)), normal.rstd);
    if (c.needs(0)) c.Set(0, Mul(c, h, normal.rstd));
  }
  SetAffine(c, normal.value, shape);
}

HOLDFAST_GRAD(group_norm, Bit(0) | Bit(1), Bit(1) | Bit(2)) {
  if (!c.grad()) return;
  const Attrs& attrs = c.attrs();
  const Value x = c.input(0), weight = c.input(1);
  const bool center = attrs.Bool("center");
  if (!x) return;
  if (!c.create_graph()) {
    const Value inputs[] = {c.grad(), x, weight, c.output(1), c.output(2)};
    SetAll(c, c.CallAll(OpId::group_norm_backward, inputs,
                        {{"groups", attrs.Get("groups")},
                         {"normalized_dims", attrs.Get("normalized_dims")},
                         {"center", center}}));
    return;
  }
  const TensorSpec& spec = x->spec();
  const int count = static_cast<int>(attrs.Int("normalized_dims"));
  // The dimensions of weight in x, those of a row, and x seen as rows.
  Dims shape, dims, rows = spec.shape;
  if (count > 0) {
    shape.assign(spec.shape.end() - count, spec.shape.end());
    for (int d = spec.rank() - count; d < spec.rank(); ++d) dims.push_back(d);
  } else {
    const int64_t groups = attrs.Int("groups");
    shape = ChannelShape(spec);
    dims = {2};
    int64_t row = spec.shape[1] / groups;
    for (int d = 2; d < spec.rank(); ++d) row *= spec.shape[d];
    rows = {spec.shape[0], groups, row};
  }
  const Normalized normal =
      Normalize(c, ViewAs(c, x, rows), dims, attrs.Float("eps"), center);
  if (c.needs(0)) {
    const Value h = ViewAs(c, Weighted(c, weight, shape), rows);
    c.Set(0, ViewAs(c, InputGradient(c, h, normal, dims, center), spec.shape));
  }
  SetAffine(c, ViewAs(c, normal.value, spec.shape), shape);
}

}  // namespace holdfast
