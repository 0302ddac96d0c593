// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of elementwise ops. In the formulas g is the gradient of the
// output y, x (or a, b) the inputs; a binary op's gradients are summed down to
// the shape of the operand that was broadcast.
#include <cmath>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

constexpr int64_t kOne = 1;
constexpr int64_t kZero = 0;

}  // namespace

// ---- one tensor

// -g
HOLDFAST_GRAD(neg) { c.Set(0, Neg(c, c.grad())); }

// g sign(x); complex: g x / |x|, zero at zero
HOLDFAST_GRAD(abs, Bit(0), Bit(0)) {
  if (IsComplex(c.input_spec(0).dtype)) {
    const Value x = c.input(0), size = c.output();
    const Value unit = Div(c, Unary(c, OpId::conj, x), size);
    const Value zero = Binary(c, OpId::eq, size, int64_t{0});
    return c.Set(0, Mul(c, c.grad(), Where(c, zero, int64_t{0}, unit)));
  }
  c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "abs"));
}

// g where y > 0
HOLDFAST_GRAD(relu, 0, Bit(0)) {
  const Value y = c.output();
  if (y) c.Set(0, c.CallOver(OpId::relu_backward, {c.TakeGrad(), y}));
}

// Linear in its gradient; the output only selects.
HOLDFAST_GRAD(relu_backward, Bit(1)) {
  if (!c.needs(0)) return;
  SetBroadcast(c, 0, Binary(c, OpId::relu_backward, c.grad(), c.input(1)));
}

// Seen from inside a rule, the conjugate of a conjugated gradient.
HOLDFAST_GRAD(conj) { c.Set(0, Unary(c, OpId::conj, c.grad())); }
HOLDFAST_GRAD(view_as_real) {
  const Value g = c.Call(OpId::clone, {c.grad()});  // its last stride is 1
  c.Set(0, Unary(c, OpId::conj, Unary(c, OpId::view_as_complex, g)));
}
HOLDFAST_GRAD(view_as_complex) {
  c.Set(0, Unary(c, OpId::view_as_real, Unary(c, OpId::conj, c.grad())));
}

// g y
HOLDFAST_GRAD(exp, 0, Bit(0)) { c.Set(0, Mul(c, c.grad(), c.output())); }

// g (y + 1)
HOLDFAST_GRAD(expm1, 0, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Add(c, c.output(), kOne)));
}

// g / x
HOLDFAST_GRAD(log, Bit(0)) { c.Set(0, Div(c, c.grad(), c.input(0))); }

// g / (x + 1)
HOLDFAST_GRAD(log1p, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Add(c, c.input(0), kOne)));
}

// g / 2y
HOLDFAST_GRAD(sqrt, 0, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Mul(c, c.output(), int64_t{2})));
}

// -g y^3 / 2
HOLDFAST_GRAD(rsqrt, 0, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Mul(c, Pow(c, c.output(), int64_t{3}), -0.5)));
}

// -g y^2
HOLDFAST_GRAD(reciprocal, 0, Bit(0)) {
  const Value y = c.output();
  c.Set(0, Neg(c, Mul(c, c.grad(), Mul(c, y, y))));
}

// g cos x
HOLDFAST_GRAD(sin, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Unary(c, OpId::cos, c.input(0))));
}

// -g sin x
HOLDFAST_GRAD(cos, Bit(0)) {
  c.Set(0, Neg(c, Mul(c, c.grad(), Unary(c, OpId::sin, c.input(0)))));
}

// g / (x ln 2)
HOLDFAST_GRAD(log2, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Mul(c, c.input(0), std::log(2.0))));
}

// g 2/sqrt(pi) exp(-x^2)
HOLDFAST_GRAD(erf, Bit(0)) {
  static const double kScale = 2.0 / std::sqrt(std::acos(-1.0));
  const Value x = c.input(0);
  const Value bell = Unary(c, OpId::exp, Neg(c, Mul(c, x, x)));
  c.Set(0, Mul(c, c.grad(), Mul(c, bell, kScale)));
}

// Piecewise constant: zero.
HOLDFAST_GRAD(sign) { static_cast<void>(c); }
HOLDFAST_GRAD(floor) { static_cast<void>(c); }
HOLDFAST_GRAD(ceil) { static_cast<void>(c); }
HOLDFAST_GRAD(round) { static_cast<void>(c); }

// g where min <= x <= max
HOLDFAST_GRAD(clamp, Bit(0)) {
  const Value x = c.input(0);
  const AttrValue& min = c.attrs().Get("min");
  const AttrValue& max = c.attrs().Get("max");
  Value inside;
  if (!IsNone(min)) inside = Binary(c, OpId::ge, x, min);
  if (!IsNone(max)) {
    const Value below = Binary(c, OpId::le, x, max);
    inside = inside ? And(c, inside, below) : below;
  }
  c.Set(0, inside ? Where(c, inside, c.grad(), kZero) : c.grad());
}

// ---- two operands

// g, g
HOLDFAST_GRAD(add) {
  if (c.needs(0)) SetBroadcast(c, 0, c.grad());
  if (c.needs(1)) SetBroadcast(c, 1, c.grad());
}

// g, -g
HOLDFAST_GRAD(sub) {
  if (c.needs(0)) SetBroadcast(c, 0, c.grad());
  if (c.needs(1)) SetBroadcast(c, 1, Neg(c, c.grad()));
}

// g b, g a
HOLDFAST_GRAD(mul, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)) {
  // A square: one gradient, not two that are added up.
  if (c.same_variable(0, 1) && IsFloat(c.input_spec(0).dtype)) {
    return c.Set(0, Slope(c, c.TakeGrad(), c.input(0), "square"));
  }
  if (c.needs(0)) SetBroadcast(c, 0, Mul(c, c.grad(), c.operand(1)));
  if (c.needs(1)) SetBroadcast(c, 1, Mul(c, c.grad(), c.operand(0)));
}

// g / b, -g (a / b) / b
HOLDFAST_GRAD(div, Bit(0) | Bit(1), 0, Bit(0)) {
  const Operand b = c.operand(1);
  if (c.needs(0)) SetBroadcast(c, 0, Div(c, c.grad(), b));
  if (c.needs(1)) {
    const Value slope = Div(c, Div(c, c.operand(0), b), b);
    SetBroadcast(c, 1, Neg(c, Mul(c, c.grad(), slope)));
  }
}

// y = a - b floor(a / b): g, -g floor(a / b)
HOLDFAST_GRAD(remainder, Bit(0) | Bit(1), 0, Bit(0)) {
  if (c.needs(0)) SetBroadcast(c, 0, c.grad());
  if (c.needs(1)) {
    const Value times =
        Binary(c, OpId::floor_divide, c.operand(0), c.operand(1));
    SetBroadcast(c, 1, Neg(c, Mul(c, c.grad(), times)));
  }
}

namespace {

// g n x^(n-1) for a number n
Value PowByNumber(GradContext& c, const Value& x, const AttrValue& n) {
  const double value = AttrAsDouble(n);
  if (value == 0.0) return nullptr;
  if (value == 1.0) return c.grad();
  if (value == 2.0) {
    return IsFloat(c.input_spec(0).dtype)
               ? Slope(c, c.TakeGrad(), x, "square")
               : Mul(c, c.grad(), Mul(c, x, int64_t{2}));
  }
  const bool real = std::holds_alternative<double>(n);
  const Operand less =
      real ? Operand(value - 1.0) : Operand(AttrAsInt(n) - int64_t{1});
  return Mul(c, c.grad(), Mul(c, Pow(c, x, less), n));
}

// g b a^(b-1). At a = b = 0 that would be 0 inf; the exponent is shifted
// there, which gives the right 0 and keeps higher derivatives finite.
Value PowBase(GradContext& c, const Value& a, const Value& b) {
  const Value corner = And(c, Equal(c, a, kZero), Equal(c, b, kZero));
  const Value exponent = Sub(c, Where(c, corner, kOne, b), kOne);
  return Mul(c, c.grad(), Mul(c, b, Pow(c, a, exponent)));
}

// g a^b log a, and 0 where a = 0 <= b
Value PowExponent(GradContext& c, const Operand& a, const Value& b) {
  const Value power = Pow(c, a, b);
  Value log;
  if (!a.is_number()) {
    const Value corner =
        And(c, Equal(c, a, kZero), Binary(c, OpId::ge, b, kZero));
    // In the type of the result: the logarithm of integers would be float32.
    log = Unary(c, OpId::log, CastLike(c, Where(c, corner, kOne, a), power));
  } else if (const double base = AttrAsDouble(a.number); base != 0.0) {
    return Mul(c, c.grad(), Mul(c, power, std::log(base)));
  } else {
    log = Where(c, Binary(c, OpId::ge, b, kZero), 0.0, -HUGE_VAL);
  }
  return Mul(c, c.grad(), Mul(c, power, log));
}

}  // namespace

HOLDFAST_GRAD(pow, Bit(0) | Bit(1)) {
  if (c.needs(0)) {
    SetBroadcast(c, 0,
                 c.is_number(1) ? PowByNumber(c, c.input(0), c.number(1))
                                : PowBase(c, c.input(0), c.input(1)));
  }
  if (c.needs(1)) {
    SetBroadcast(c, 1, PowExponent(c, c.operand(0), c.input(1)));
  }
}

namespace {

// g to the operand that won; half each where they are equal.
void Extremum(GradContext& c, OpId wins) {
  const Operand a = c.operand(0);
  const Operand b = c.operand(1);
  const Value tie = Equal(c, a, b);
  const Value half = Where(c, tie, Mul(c, c.grad(), 0.5), c.grad());
  if (c.needs(0)) {
    SetBroadcast(c, 0, Where(c, Binary(c, wins, b, a), kZero, half));
  }
  if (c.needs(1)) {
    SetBroadcast(c, 1, Where(c, Binary(c, wins, a, b), kZero, half));
  }
}

}  // namespace

HOLDFAST_GRAD(maximum, Bit(0) | Bit(1)) { Extremum(c, OpId::gt); }
HOLDFAST_GRAD(minimum, Bit(0) | Bit(1)) { Extremum(c, OpId::lt); }

// g where condition, g where not
HOLDFAST_GRAD(where, Bit(0)) {
  const Value condition = c.input(0);
  if (c.needs(1)) SetBroadcast(c, 1, Where(c, condition, c.grad(), kZero));
  if (c.needs(2)) SetBroadcast(c, 2, Where(c, condition, kZero, c.grad()));
}

}  // namespace holdfast
