// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of the fused activations, and of tanh and sigmoid:
// activation_backward, whose own rule has the second derivatives f'' of these
// and of other functions that it serves.
#include <cmath>
#include <string>
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

constexpr int64_t kOne = 1;

// s (1 - s)
Value LogisticSlope(GradContext& c, const Value& s) {
  return Mul(c, s, Sub(c, kOne, s));
}

// phi(x) (2 - x^2)
Value GeluCurvature(GradContext& c, const Value& x) {
  static const double kScale = 1 / std::sqrt(2 * std::acos(-1.0));
  const Value square = Mul(c, x, x);
  const Value bell = Unary(c, OpId::exp, Mul(c, square, -0.5));
  return Mul(c, Mul(c, bell, kScale), Sub(c, int64_t{2}, square));
}

// f = x s(v), v = k (x + 0.044715 x^3):
// f'' = s' (2 v' + x v'' + x v'^2 (1 - 2s)), s' = s (1 - s)
Value GeluTanhCurvature(GradContext& c, const Value& x) {
  static const double k = 2 * std::sqrt(2 / std::acos(-1.0));
  const Value square = Mul(c, x, x);
  const Value v = Mul(c, x, Add(c, Mul(c, square, k * 0.044715), k));
  const Value v1 = Add(c, Mul(c, square, k * 0.134145), k);
  const Value v2 = Mul(c, x, k * 0.26829);
  const Value s = Unary(c, OpId::sigmoid, v);
  const Value bend = Mul(c, Mul(c, v1, v1), Sub(c, kOne, Mul(c, s, 2.0)));
  const Value inner = Mul(c, x, Add(c, v2, bend));
  return Mul(c, LogisticSlope(c, s), Add(c, Mul(c, v1, 2.0), inner));
}

// s' (2 + x (1 - 2s))
Value SiluCurvature(GradContext& c, const Value& x) {
  const Value s = Unary(c, OpId::sigmoid, x);
  const Value bend = Mul(c, x, Sub(c, kOne, Mul(c, s, 2.0)));
  return Mul(c, LogisticSlope(c, s), Add(c, bend, 2.0));
}

// t = tanh(softplus(x)): 2 t' + x t'', t' = (1 - t^2) s,
// t'' = t' (1 - s - 2 t s)
Value MishCurvature(GradContext& c, const Value& x) {
  const Value s = Unary(c, OpId::sigmoid, x);
  const Value t =
      Unary(c, OpId::tanh,
            c.Call(OpId::softplus, {x}, {{"beta", 1.0}, {"threshold", 20.0}}));
  const Value slope = Mul(c, Sub(c, kOne, Mul(c, t, t)), s);
  const Value bend = Sub(c, Sub(c, kOne, s), Mul(c, Mul(c, t, s), 2.0));
  return Mul(c, slope, Add(c, Mul(c, x, bend), 2.0));
}

// Null where f'' is zero everywhere.
Value Curvature(GradContext& c, const Value& x) {
  const Attrs& attrs = c.attrs();
  const std::string& op = attrs.Str("op");
  if (op == "gelu") return GeluCurvature(c, x);
  if (op == "gelu_tanh") return GeluTanhCurvature(c, x);
  if (op == "silu") return SiluCurvature(c, x);
  if (op == "mish") return MishCurvature(c, x);
  if (op == "softplus") {
    const Value z = Mul(c, x, attrs.Get("a"));
    const Value s = Unary(c, OpId::sigmoid, z);
    const Value curved = Mul(c, LogisticSlope(c, s), attrs.Get("a"));
    return Where(c, Binary(c, OpId::gt, z, attrs.Get("b")), 0.0, curved);
  }
  if (op == "elu") {
    const double k = attrs.Float("c");
    const double scale = attrs.Float("a") * attrs.Float("b") * k * k;
    // The clamp keeps the side not taken, and its gradient, finite.
    const Value low = c.Call(OpId::clamp, {x}, {{"max", 0.0}});
    const Value curved = Mul(c, Unary(c, OpId::exp, Mul(c, low, k)), scale);
    return Where(c, Binary(c, OpId::gt, x, 0.0), 0.0, curved);
  }
  if (op == "hardswish") {
    const Value inside =
        And(c, Binary(c, OpId::gt, x, -3.0), Binary(c, OpId::lt, x, 3.0));
    return CastLike(c, inside, x) ? Mul(c, CastLike(c, inside, x), 1.0 / 3)
                                  : nullptr;
  }
  if (op == "tanh") return Mul(c, x, -2.0);                  // of 1 - x^2
  if (op == "sigmoid") return Sub(c, kOne, Mul(c, x, 2.0));  // of x (1 - x)
  if (op == "huber") {                                       // 1 within delta
    const Value size = Unary(c, OpId::abs, x);
    return CastLike(c, Binary(c, OpId::lt, size, attrs.Get("a")), x);
  }
  if (op == "softsign") {  // -2 sign(x) / (1 + |x|)^3
    const Value size = Add(c, Unary(c, OpId::abs, x), kOne);
    return Mul(c, Mul(c, Unary(c, OpId::sign, x), -2.0),
               Pow(c, size, int64_t{-3}));
  }
  return nullptr;
}

}  // namespace

HOLDFAST_GRAD(gelu, Bit(0)) {
  const bool tanh = c.attrs().Str("approximate") == "tanh";
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), tanh ? "gelu_tanh" : "gelu"));
}
HOLDFAST_GRAD(silu, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "silu"));
}
HOLDFAST_GRAD(mish, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "mish"));
}
HOLDFAST_GRAD(softplus, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "softplus", c.attrs().Get("beta"),
                 c.attrs().Get("threshold")));
}
HOLDFAST_GRAD(leaky_relu, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "leaky_relu",
                 c.attrs().Get("negative_slope")));
}
HOLDFAST_GRAD(elu, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "elu", c.attrs().Get("alpha"),
                 c.attrs().Get("scale"), c.attrs().Get("input_scale")));
}
HOLDFAST_GRAD(hardswish, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "hardswish"));
}
HOLDFAST_GRAD(hardsigmoid, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "hardsigmoid"));
}

HOLDFAST_GRAD(hardtanh, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "hardtanh",
                 c.attrs().Get("min_val"), c.attrs().Get("max_val")));
}
HOLDFAST_GRAD(hardshrink, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "hardshrink",
                 c.attrs().Get("lambd")));
}
HOLDFAST_GRAD(softshrink, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "softshrink",
                 c.attrs().Get("lambd")));
}
HOLDFAST_GRAD(threshold, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "threshold",
                 c.attrs().Get("threshold"), c.attrs().Get("value")));
}
HOLDFAST_GRAD(softsign, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "softsign"));
}

HOLDFAST_GRAD(huber, Bit(0)) {
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "huber", c.attrs().Get("delta")));
}

// g (1 - y^2)
HOLDFAST_GRAD(tanh, 0, Bit(0)) {
  const Value y = c.output();
  c.Set(0, IsComplex(c.input_spec(0).dtype)
               ? Mul(c, c.grad(), Sub(c, kOne, Mul(c, y, y)))
               : Slope(c, c.TakeGrad(), y, "tanh"));
}

// g y (1 - y)
HOLDFAST_GRAD(sigmoid, 0, Bit(0)) {
  const Value y = c.output();
  c.Set(0, IsComplex(c.input_spec(0).dtype)
               ? Mul(c, c.grad(), LogisticSlope(c, y))
               : Slope(c, c.TakeGrad(), y, "sigmoid"));
}

// r = d f'(x): to d: g f'(x); to x: g d f''(x)
HOLDFAST_GRAD(activation_backward, Bit(0) | Bit(1), 0, Bit(0)) {
  const Attrs& attrs = c.attrs();
  const Value x = c.input(1);
  if (c.needs(0)) {
    c.Set(0, Slope(c, c.grad(), x, attrs.Str("op"), attrs.Get("a"),
                   attrs.Get("b"), attrs.Get("c")));
  }
  if (!c.needs(1)) return;
  if (attrs.Str("op") == "square") {
    return c.Set(1, Mul(c, Mul(c, c.grad(), c.input(0)), 2.0));
  }
  if (const Value curvature = Curvature(c, x)) {
    c.Set(1, Mul(c, c.grad(), Mul(c, c.input(0), curvature)));
  }
}

}  // namespace holdfast
