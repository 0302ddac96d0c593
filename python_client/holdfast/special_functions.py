# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementwise functions composed of the table's special functions."""

import math

from holdfast import _C
from holdfast._registry import both, inplace_of, method
from holdfast.autograd.function import Function
from holdfast.elementwise import distance, times_log

_ops = _C.ops
Tensor = _C.Tensor

for _name, _target in {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
}.items():
    _f = getattr(_ops, _target)

    def _alias(*args, _f=_f, **kwargs):
        return _f(*args, **kwargs)

    _alias.__name__ = _alias.__qualname__ = _name
    _alias.__doc__ = f"{_target}() under NumPy's name."
    both(_alias)
    setattr(Tensor, _name + "_", getattr(Tensor, _target + "_"))

for _name, _target in {
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__rdiv__": "__rtruediv__",
}.items():
    setattr(Tensor, _name, getattr(Tensor, _target))


@method
def __rlshift__(self, other):
    """A number's bits moved left, by each element."""
    return _ops.bitwise_left_shift(other, self)


@method
def __rrshift__(self, other):
    """A number's bits moved right, by each element."""
    return _ops.bitwise_right_shift(other, self)


@both(out=True)
def sinc(input):
    """sin(pi x) / (pi x), 1 at 0."""
    x = input * math.pi
    zero = _ops.eq(x, 0)
    # The quotient is taken away from 0, so that no NaN enters its gradient.
    safe = _ops.where(zero, 1.0, x)
    return _ops.where(zero, 1.0, _ops.div(_ops.sin(safe), safe))


class _NextAfter(Function):
    """The step towards `other` is as long as the number's last digit: no slope."""

    @staticmethod
    def forward(ctx, input, other):
        ctx.save_for_backward(_ops.ne(input, other))
        ctx.shapes = tuple(input.shape), tuple(other.shape)
        return _ops.nextafter(input, other)

    @staticmethod
    def backward(ctx, gradient):
        (moved,) = ctx.saved_tensors
        own, others = ctx.shapes
        of_input = _ops.where(moved, gradient, 0.0).sum_to_size(own)
        return of_input, _ops.full(others, 0, dtype=gradient.dtype)


@both(out=True)
def nextafter(input, other):
    """The next number from input towards other; the gradient is input's, where the two
    differ."""
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    if len(tensors) == 2 and any(t.requires_grad for t in tensors):
        if _C.is_grad_enabled():
            return _NextAfter.apply(input, other)
    return _ops.nextafter(input, other)


def spherical_bessel_j0(input):
    """sin(x) / x, 1 at 0."""
    return sinc(input * (1 / math.pi))


@both(out=True)
def heaviside(input, values):
    """0 below 0, 1 above, `values` at 0. Not differentiable."""
    if input.dtype is not values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes. "
            f"Got {input.dtype} and {values.dtype}."
        )
    step = _ops.to(_ops.gt(input, 0), input.dtype)
    return _ops.where(_ops.eq(input, 0), values, step)


@both(out=True)
def float_power(input, exponent):
    """input ** exponent in float64 (complex128 if either is complex)."""

    def wide(x):
        if not isinstance(x, Tensor):
            return x
        return _ops.to(x, _C.complex128 if x.dtype.is_complex else _C.float64)

    return _ops.pow(wide(input), wide(exponent))


@both(out=True)
def ldexp(input, other):
    """input * 2**other."""
    return _ops.mul(input, _ops.exp2(other))


@both(out=True)
def signbit(input):
    """True where the sign is negative, -0.0 and negative NaN included."""
    if input.is_floating_point():
        return _ops.lt(_ops.copysign(1.0, input), 0)
    return _ops.lt(input, 0)


@both
def positive(input):
    """The tensor itself; bool is an error."""
    if input.dtype is _C.bool:
        raise RuntimeError(
            "The `+` operator, on a bool tensor is not supported. Got bool."
        )
    return input


@both(out=True)
def logaddexp2(input, other):
    """log2(2**input + 2**other) without overflow."""
    high = _ops.maximum(input, other)
    spread = _ops.exp2(_ops.neg(distance(input, other)))
    return high + _ops.log1p(spread) / math.log(2.0)


@both(out=True)
def xlog1py(input, other):
    """input * log1p(other), 0 where input is 0."""
    return times_log(input, other, _ops.log1p, -1.0)


@both(out=True)
def entr(input):
    """-x log(x), 0 at 0, -inf below (the terms of an entropy)."""
    inside = _ops.gt(input, 0)
    safe = _ops.where(inside, input, 1.0)
    # The root is 0 at 0, with the infinite slope of x log(x).
    outside = _ops.where(_ops.lt(input, 0), -math.inf, _ops.sqrt(input))
    return _ops.where(inside, -safe * _ops.log(safe), outside)


@both(out=True)
def ndtr(input):
    """Distribution function of the standard normal distribution."""
    return _ops.erfc(input * -math.sqrt(0.5)) * 0.5


@both(out=True)
def polygamma(n, input=None):
    """The n-th derivative of digamma (n >= 0); gradients of any order."""
    if isinstance(n, Tensor):  # the method: x.polygamma(n)
        n, input = input, n
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. Got n={n}.")
    if n == 0:
        return _ops.digamma(input)
    # 171! is beyond float64.
    factor = math.factorial(n) if n <= 170 else math.inf
    return _ops.zeta(float(n + 1), input) * (factor if n % 2 else -factor)


@both(names=("multigammaln",), out=True)
def mvlgamma(input, p):
    """Logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1. Got p={p}.")
    dtype = input.dtype if input.is_floating_point() else _C.default_dtype()
    steps = _ops.to(_ops.arange(0, p, device=input.device), dtype) * 0.5
    terms = _ops.lgamma(_ops.unsqueeze(input, -1) - steps)
    return _ops.sum(terms, -1) + p * (p - 1) / 4 * math.log(math.pi)


# Rows of the table share one op, which is told the name.
_NAMED = {
    "bessel_j0": "Bessel function of the first kind of order 0.",
    "bessel_j1": "Bessel function of the first kind of order 1.",
    "bessel_y0": "Bessel function of the second kind of order 0; NaN below 0.",
    "bessel_y1": "Bessel function of the second kind of order 1; NaN below 0.",
    "i0": "Modified Bessel function of the first kind of order 0.",
    "i0e": "i0(x) exp(-|x|).",
    "i1": "Modified Bessel function of the first kind of order 1.",
    "i1e": "i1(x) exp(-|x|).",
    "modified_bessel_k0": "Modified Bessel function of the second kind of order 0.",
    "modified_bessel_k1": "Modified Bessel function of the second kind of order 1.",
    "scaled_modified_bessel_k0": "modified_bessel_k0(x) exp(x).",
    "scaled_modified_bessel_k1": "modified_bessel_k1(x) exp(x).",
    "erfcx": "erfc(x) exp(x^2), without overflow above 0.",
    "log_ndtr": "log(ndtr(x)), exact far below 0.",
    "ndtri": "Inverse of ndtr.",
}
NAMED = {}


def _named(name, doc):
    def function(input, *, out=None):
        return _ops.special_function(input, name, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Elementwise; integers become float32."
    return function


for _name, _doc in _NAMED.items():
    NAMED[_name] = _named(_name, _doc)
NAMED["modified_bessel_i0"], NAMED["modified_bessel_i1"] = NAMED["i0"], NAMED["i1"]
both(NAMED["i0"])


for _f in (sinc, heaviside, NAMED["i0"], float_power, ldexp, polygamma, mvlgamma):
    inplace_of(_f)
