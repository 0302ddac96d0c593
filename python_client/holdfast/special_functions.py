# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementwise functions composed of the table's special functions."""

import math

from holdfast import _C
from holdfast._registry import both, inplace_of

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
}.items():
    setattr(Tensor, _name, getattr(Tensor, _target))


@both
def sinc(input):
    """sin(pi x) / (pi x), 1 at 0."""
    x = input * math.pi
    zero = _ops.eq(x, 0)
    # The quotient is taken away from 0, so that no NaN enters its gradient.
    safe = _ops.where(zero, 1.0, x)
    return _ops.where(zero, 1.0, _ops.div(_ops.sin(safe), safe))


@both
def heaviside(input, values):
    """0 below 0, 1 above, `values` at 0. Not differentiable."""
    if input.dtype is not values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes. "
            f"Got {input.dtype} and {values.dtype}."
        )
    step = _ops.to(_ops.gt(input, 0), input.dtype)
    return _ops.where(_ops.eq(input, 0), values, step)


@both
def float_power(input, exponent):
    """input ** exponent in float64 (complex128 if either is complex)."""

    def wide(x):
        if not isinstance(x, Tensor):
            return x
        return _ops.to(x, _C.complex128 if x.dtype.is_complex else _C.float64)

    return _ops.pow(wide(input), wide(exponent))


@both
def ldexp(input, other):
    """input * 2**other."""
    return _ops.mul(input, _ops.exp2(other))


@both
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


@both
def logaddexp2(input, other):
    """log2(2**input + 2**other) without overflow."""
    high = _ops.maximum(input, other)
    spread = _ops.exp2(_ops.neg(_ops.abs(_ops.sub(input, other))))
    return high + _ops.log1p(spread) / math.log(2.0)


@both
def xlog1py(input, other):
    """input * log1p(other), 0 where input is 0."""
    return _ops.where(_ops.eq(input, 0), 0.0, _ops.mul(input, _ops.log1p(other)))


@both
def entr(input):
    """-x log(x), 0 at 0, -inf below (the terms of an entropy)."""
    inside = _ops.gt(input, 0)
    safe = _ops.where(inside, input, 1.0)
    outside = _ops.where(_ops.lt(input, 0), -math.inf, 0.0 * safe)
    return _ops.where(inside, -safe * _ops.log(safe), outside)


@both
def ndtr(input):
    """Distribution function of the standard normal distribution."""
    return _ops.erfc(input * -math.sqrt(0.5)) * 0.5


@both
def ndtri(input):
    """Inverse of ndtr."""
    return _ops.erfinv(input * 2 - 1) * math.sqrt(2.0)


@both
def log_ndtr(input):
    """log(ndtr(input)); far below 0 from the asymptotic series of erfc."""
    # Where erfc would leave the type's range, or nearly.
    edge = -20.0 if input.dtype is _C.float64 else -10.0
    far = _ops.lt(input, edge)
    x = _ops.where(far, input, edge)
    inverse = 1 / (x * x)
    series = 1.0
    for odd in (11, 9, 7, 5, 3, 1):  # 1 - 1/x^2 (1 - 3/x^2 (1 - 5/x^2 (...)))
        series = 1 - odd * inverse * series
    tail = -0.5 * x * x - _ops.log(-x) - 0.5 * math.log(2 * math.pi) + _ops.log(series)
    near = _ops.log(ndtr(_ops.where(far, 0.0, input)))
    return _ops.where(far, tail, near)


@both
def polygamma(n, input=None):
    """The n-th derivative of digamma (n >= 0); gradients of any order."""
    if isinstance(n, Tensor):  # the method: x.polygamma(n)
        n, input = input, n
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. Got n={n}.")
    if n == 0:
        return _ops.digamma(input)
    return _ops.zeta(float(n + 1), input) * (math.factorial(n) * (-1.0) ** (n + 1))


@both(names=("multigammaln",))
def mvlgamma(input, p):
    """Logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1. Got p={p}.")
    total = p * (p - 1) / 4 * math.log(math.pi)
    for i in range(p):
        total = _ops.lgamma(input - i / 2) + total
    return total


for _f in (sinc, heaviside, float_power, ldexp, polygamma, mvlgamma):
    inplace_of(_f)
