# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions of each element. Two operands are first made of one type, in which a 0-d
tensor counts like any other, and a Python number not."""

import operator

import holdfast
from holdfast import Tensor
from holdfast.array_api import complex_functions
from holdfast.array_api.dtypes import as_type, isdtype, promoted, result_type

__all__ = ["clip", "real", "imag", "conj", "round", "sign", "positive"]


def _public(f, name):
    f.__name__ = f.__qualname__ = name
    __all__.append(name)
    globals()[name] = f


def _unary(name, own=None, complex_form=None):
    """The function of the package, or `complex_form` for complex numbers."""
    own = own or getattr(holdfast, name)
    if complex_form is None:

        def unary(x, /):
            return own(x)

    else:

        def unary(x, /):
            return complex_form(x) if x.dtype.is_complex else own(x)

    unary.__doc__ = f"{name} of each element."
    _public(unary, name)


for _name in """
    abs isfinite isinf isnan log logical_not negative reciprocal signbit square
""".split():
    _unary(_name)
for _name in """
    acos acosh asin asinh atan atanh cos cosh exp expm1 log10 log1p log2 sin sinh
    sqrt tan tanh
""".split():
    _unary(_name, complex_form=getattr(complex_functions, _name))
for _name in ("ceil", "floor", "trunc"):
    _unary(_name)
_unary("bitwise_invert", holdfast.bitwise_not)


def _operands(x1, x2):
    """Tensors of their common type; a number beside one stays, for the op to take."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype is x2.dtype:
            return x1, x2
        return promoted(x1, x2)
    common = result_type(x1, x2)
    return [as_type(x, common) if isinstance(x, Tensor) else x for x in (x1, x2)]


def _operator(name, apply):
    def binary(x1, x2, /):
        return apply(*_operands(x1, x2))

    binary.__doc__ = f"{name} of each pair of elements."
    _public(binary, name)


def _pairwise(name):
    apply = getattr(holdfast, name)

    def binary(x1, x2, /):
        return apply(*promoted(x1, x2))

    binary.__doc__ = f"{name} of each pair of elements."
    _public(binary, name)


for _name, _apply in {
    "add": operator.add,
    "bitwise_and": operator.and_,
    "bitwise_left_shift": operator.lshift,
    "bitwise_or": operator.or_,
    "bitwise_right_shift": operator.rshift,
    "bitwise_xor": operator.xor,
    "divide": operator.truediv,
    "equal": operator.eq,
    "floor_divide": operator.floordiv,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "multiply": operator.mul,
    "not_equal": operator.ne,
    "pow": operator.pow,
    "remainder": operator.mod,
    "subtract": operator.sub,
}.items():
    _operator(_name, _apply)
for _name in """
    atan2 copysign hypot logaddexp logical_and logical_or logical_xor maximum minimum
    nextafter
""".split():
    _pairwise(_name)


def positive(x, /):
    """A copy."""
    return holdfast.clone(x)


def sign(x, /):
    """-1, 0 or 1; of complex numbers x / |x|, or 0; NaN of NaN."""
    if x.dtype.is_complex:
        return holdfast.sgn(x)
    result = holdfast.sign(x)
    return holdfast.where(x != x, x, result) if x.is_floating_point() else result


def round(x, /):
    """The nearest whole number, the even one of two; of each part."""
    if x.dtype.is_complex:
        return holdfast.view_as_complex(holdfast.round(holdfast.view_as_real(x)))
    return holdfast.round(x)


def real(x, /):
    """Real parts."""
    return holdfast.real(x)


def imag(x, /):
    """Imaginary parts; zeros for real numbers."""
    return holdfast.imag(x) if x.dtype.is_complex else holdfast.zeros_like(x)


def conj(x, /):
    """Complex conjugates."""
    return holdfast.conj(x)


def _bound(bound, x, lowest, largest):
    """The bound as x's type; None for a number that excludes nothing."""
    if bound is None or isinstance(bound, Tensor):
        return bound if bound is None else as_type(bound, x.dtype)
    if isinstance(bound, int) and not lowest <= bound <= largest:
        return None
    return holdfast.tensor(bound, dtype=x.dtype, device=x.device)


def clip(x, /, min=None, max=None):
    """x between bounds, numbers or arrays; NaN where either is NaN."""
    if isdtype(x.dtype, "integral"):
        limits = holdfast.iinfo(x.dtype)
        lowest, largest = limits.min, limits.max
    else:
        lowest, largest = -float("inf"), float("inf")
    low, high = (_bound(b, x, lowest, largest) for b in (min, max))
    result = holdfast.clone(x) if low is None else holdfast.maximum(x, low)
    return result if high is None else holdfast.minimum(result, high)
