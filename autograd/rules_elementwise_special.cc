// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of trigonometric, hyperbolic and special functions. g is the
// gradient of the output y, x (or a, b) the inputs.
#include <cmath>
#include <string>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

constexpr int64_t kOne = 1;
constexpr int64_t kTwo = 2;

Value Square(GradContext& c, const Value& x) { return Mul(c, x, x); }

// 1 / sqrt(x)
Value InverseRoot(GradContext& c, const Value& x) {
  return Unary(c, OpId::rsqrt, x);
}

}  // namespace

// g (1 + y^2)
HOLDFAST_GRAD(tan, 0, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Add(c, Square(c, c.output()), kOne)));
}

// g / sqrt(1 - x^2)
HOLDFAST_GRAD(asin, Bit(0)) {
  const Value x = c.input(0);
  c.Set(0, Mul(c, c.grad(), InverseRoot(c, Sub(c, kOne, Square(c, x)))));
}

// -g / sqrt(1 - x^2)
HOLDFAST_GRAD(acos, Bit(0)) {
  const Value x = c.input(0);
  c.Set(0,
        Neg(c, Mul(c, c.grad(), InverseRoot(c, Sub(c, kOne, Square(c, x))))));
}

// g / (1 + x^2)
HOLDFAST_GRAD(atan, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Add(c, Square(c, c.input(0)), kOne)));
}

// g cosh x
HOLDFAST_GRAD(sinh, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Unary(c, OpId::cosh, c.input(0))));
}

// g sinh x
HOLDFAST_GRAD(cosh, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Unary(c, OpId::sinh, c.input(0))));
}

// g / sqrt(x^2 + 1)
HOLDFAST_GRAD(asinh, Bit(0)) {
  const Value x = c.input(0);
  c.Set(0, Mul(c, c.grad(), InverseRoot(c, Add(c, Square(c, x), kOne))));
}

// g / sqrt(x^2 - 1). The root of a complex number's square has the wrong sign
// in half of the plane.
HOLDFAST_GRAD(acosh, Bit(0)) {
  const Value x = c.input(0);
  if (IsComplex(c.input_spec(0).dtype)) {
    c.Set(0, Mul(c, Mul(c, c.grad(), InverseRoot(c, Sub(c, x, kOne))),
                 InverseRoot(c, Add(c, x, kOne))));
    return;
  }
  c.Set(0, Mul(c, c.grad(), InverseRoot(c, Sub(c, Square(c, x), kOne))));
}

// g / (1 - x^2)
HOLDFAST_GRAD(atanh, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Sub(c, kOne, Square(c, c.input(0)))));
}

// g y ln 2
HOLDFAST_GRAD(exp2, 0, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Mul(c, c.output(), std::log(2.0))));
}

// g / (x ln 10)
HOLDFAST_GRAD(log10, Bit(0)) {
  c.Set(0, Div(c, c.grad(), Mul(c, c.input(0), std::log(10.0))));
}

// -g 2/sqrt(pi) exp(-x^2)
HOLDFAST_GRAD(erfc, Bit(0)) {
  static const double kScale = -2.0 / std::sqrt(std::acos(-1.0));
  const Value bell = Unary(c, OpId::exp, Neg(c, Square(c, c.input(0))));
  c.Set(0, Mul(c, c.grad(), Mul(c, bell, kScale)));
}

// g sqrt(pi)/2 exp(y^2)
HOLDFAST_GRAD(erfinv, 0, Bit(0)) {
  static const double kScale = std::sqrt(std::acos(-1.0)) / 2.0;
  const Value growth = Unary(c, OpId::exp, Square(c, c.output()));
  c.Set(0, Mul(c, c.grad(), Mul(c, growth, kScale)));
}

// g digamma(x)
HOLDFAST_GRAD(lgamma, Bit(0)) {
  c.Set(0, Mul(c, c.grad(), Unary(c, OpId::digamma, c.input(0))));
}

// g zeta(2, x)
HOLDFAST_GRAD(digamma, Bit(0)) {
  c.Set(0,
        Mul(c, c.grad(), Binary(c, OpId::zeta, AttrValue(kTwo), c.input(0))));
}

// Piecewise constant: zero.
HOLDFAST_GRAD(trunc) { static_cast<void>(c); }

// g b / (a^2 + b^2), -g a / (a^2 + b^2)
HOLDFAST_GRAD(atan2, Bit(0) | Bit(1)) {
  const Operand a = c.operand(0), b = c.operand(1);
  const Value square =
      Add(c, Mul(c, c.operand(0), c.operand(0)), Mul(c, b, c.operand(1)));
  const Value share = Div(c, c.grad(), square);
  if (c.needs(0)) SetBroadcast(c, 0, Mul(c, share, b));
  if (c.needs(1)) SetBroadcast(c, 1, Neg(c, Mul(c, share, a)));
}

// g a / y, g b / y
HOLDFAST_GRAD(hypot, Bit(0) | Bit(1), Bit(0)) {
  const Value share = Div(c, c.grad(), c.output());
  if (c.needs(0)) SetBroadcast(c, 0, Mul(c, share, c.operand(0)));
  if (c.needs(1)) SetBroadcast(c, 1, Mul(c, share, c.operand(1)));
}

// g y / a where a is not zero; b only gives its sign
HOLDFAST_GRAD(copysign, Bit(0), Bit(0)) {
  if (!c.needs(0)) return;
  const Operand a = c.operand(0);
  const Value y = c.output();
  const Value flat = Binary(c, OpId::eq, y, int64_t{0});
  const Value slope = Where(c, flat, int64_t{0}, Div(c, y, a));
  SetBroadcast(c, 0, Mul(c, c.grad(), slope));
}

namespace {

Value Special(GradContext& c, const Value& x, const char* function) {
  if (!x) return nullptr;
  return c.Call(OpId::special_function, {x},
                {{"function", std::string(function)}});
}

// y / x, and 1/2 where x is 0: a Bessel function of order 1 over its argument.
Value OverArgument(GradContext& c, const Value& y, const Value& x) {
  const Value zero = Equal(c, x, int64_t{0});
  return Where(c, zero, 0.5, Div(c, y, Where(c, zero, 1.0, x)));
}

}  // namespace

// g times the derivative: DLMF 10.6.2, 10.6.3, 10.29.2, 10.29.3, 7.10.2
HOLDFAST_GRAD(special_function, Bit(0), Bit(0)) {
  const std::string& function = c.attrs().Str("function");
  static const double kRootPi = std::sqrt(std::acos(-1.0));
  const Value x = c.input(0), y = c.output();
  if (!x || !y) return;
  Value slope;
  if (function == "bessel_j0") {
    slope = Neg(c, Special(c, x, "bessel_j1"));
  } else if (function == "bessel_j1") {
    slope = Sub(c, Special(c, x, "bessel_j0"), OverArgument(c, y, x));
  } else if (function == "bessel_y0") {
    slope = Neg(c, Special(c, x, "bessel_y1"));
  } else if (function == "bessel_y1") {
    slope = Sub(c, Special(c, x, "bessel_y0"), Div(c, y, x));
  } else if (function == "i0") {
    slope = Special(c, x, "i1");
  } else if (function == "i1") {
    slope = Sub(c, Special(c, x, "i0"), OverArgument(c, y, x));
  } else if (function == "i0e") {
    slope = Sub(c, Special(c, x, "i1e"), Mul(c, Unary(c, OpId::sign, x), y));
  } else if (function == "i1e") {
    slope =
        Sub(c, Special(c, x, "i0e"),
            Add(c, Mul(c, Unary(c, OpId::sign, x), y), OverArgument(c, y, x)));
  } else if (function == "modified_bessel_k0") {
    slope = Neg(c, Special(c, x, "modified_bessel_k1"));
  } else if (function == "modified_bessel_k1") {
    slope = Neg(c, Add(c, Special(c, x, "modified_bessel_k0"), Div(c, y, x)));
  } else if (function == "scaled_modified_bessel_k0") {
    slope = Sub(c, y, Special(c, x, "scaled_modified_bessel_k1"));
  } else if (function == "scaled_modified_bessel_k1") {
    slope = Sub(c, Sub(c, y, Special(c, x, "scaled_modified_bessel_k0")),
                Div(c, y, x));
  } else if (function == "erfcx") {
    slope = Sub(c, Mul(c, Mul(c, x, y), 2.0), 2.0 / kRootPi);
  } else if (function == "log_ndtr") {  // sqrt(2/pi) / erfcx(-x / sqrt(2))
    const Value scaled = Special(c, Mul(c, x, -std::sqrt(0.5)), "erfcx");
    slope = Div(c, std::sqrt(2.0) / kRootPi, scaled);
  } else {  // ndtri: sqrt(2 pi) exp(y^2 / 2)
    slope = Mul(c, Unary(c, OpId::exp, Mul(c, Square(c, y), 0.5)),
                std::sqrt(2.0) * kRootPi);
  }
  c.Set(0, Mul(c, c.grad(), slope));
}

// In q: -s g zeta(s + 1, q). No closed form is known for s.
HOLDFAST_GRAD(zeta, Bit(0) | Bit(1)) {
  if (c.needs(0)) {
    return c.Fail(absl::UnimplementedError(
        "[zeta] the derivative for 'input' is not implemented"));
  }
  const Operand s = c.operand(0);
  if (s.is_number()) {
    const double order = AttrAsDouble(s.number);
    const Value slope =
        Mul(c, Binary(c, OpId::zeta, order + 1, c.operand(1)), -order);
    return SetBroadcast(c, 1, Mul(c, c.grad(), slope));
  }
  const Value slope =
      Mul(c, Binary(c, OpId::zeta, Add(c, s, kOne), c.operand(1)),
          Neg(c, s.tensor));
  SetBroadcast(c, 1, Mul(c, c.grad(), slope));
}

// g, -g trunc(a / b)
HOLDFAST_GRAD(fmod, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)) {
  if (c.needs(0)) SetBroadcast(c, 0, c.grad());
  if (c.needs(1)) {
    const Value times =
        Unary(c, OpId::trunc, Div(c, c.operand(0), c.operand(1)));
    SetBroadcast(c, 1, Neg(c, Mul(c, c.grad(), times)));
  }
}

namespace {

// The gradient goes to the one chosen; to the first of equals.
void ShareChosen(GradContext& c, OpId first_wins) {
  const Operand a = c.operand(0), b = c.operand(1);
  const Value first = Binary(c, first_wins, a, b);
  const Value second_is_nan = Binary(c, OpId::ne, b, c.operand(1));
  const Value first_chosen = Binary(c, OpId::logical_or, first, second_is_nan);
  constexpr int64_t kZero = 0;
  if (c.needs(0)) SetBroadcast(c, 0, Where(c, first_chosen, c.grad(), kZero));
  if (c.needs(1)) SetBroadcast(c, 1, Where(c, first_chosen, kZero, c.grad()));
}

}  // namespace

HOLDFAST_GRAD(fmax, Bit(0) | Bit(1)) { ShareChosen(c, OpId::ge); }
HOLDFAST_GRAD(fmin, Bit(0) | Bit(1)) { ShareChosen(c, OpId::le); }

}  // namespace holdfast
