# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementwise functions that the op table's primitives compose to."""

import math

from holdfast import _C
from holdfast._registry import accepts_out, both, function, inplace_of, overload
from holdfast.constants import in_graph_of
from holdfast.dtypes import finfo, get_default_dtype, result_type

_ops = _C.ops
Tensor = _C.Tensor


def _alias(target, *names):
    """Other names of a table op, and of its in-place form."""
    f = getattr(_ops, target)
    function(f, names=names)
    for name in names:
        setattr(Tensor, name, getattr(Tensor, target))
        if hasattr(Tensor, target + "_"):
            setattr(Tensor, name + "_", getattr(Tensor, target + "_"))


_alias("neg", "negative")
_alias("abs", "absolute")
_alias("sub", "subtract")
_alias("mul", "multiply")
_alias("ne", "not_equal")
_alias("lt", "less")
_alias("le", "less_equal")
_alias("gt", "greater")
_alias("ge", "greater_equal")


def _finish(result, target, inplace):
    if inplace and not isinstance(target, Tensor):
        raise TypeError(f"an in-place op writes a Tensor, not {type(target).__name__}")
    return target.copy_(result) if inplace else result


@overload("add")
@accepts_out
def _add(input, other, *, alpha=1, inplace_=False):
    scaled = other if alpha == 1 else other * alpha
    return (Tensor.add_ if inplace_ else _ops.add)(input, scaled)


@overload("sub")
@accepts_out
def _sub(input, other, *, alpha=1, inplace_=False):
    scaled = other if alpha == 1 else other * alpha
    return (Tensor.sub_ if inplace_ else _ops.sub)(input, scaled)


@overload("pow")
@accepts_out
def _pow(input, exponent, *, inplace_=False):
    return (Tensor.pow_ if inplace_ else _ops.pow)(input, exponent)


@overload("div")
@accepts_out
def _div(input, other, *, rounding_mode=None, inplace_=False):
    if rounding_mode is None:
        result = _ops.div(input, other)
    elif rounding_mode == "floor":
        result = in_graph_of(_ops.floor_divide(input, other), input, other)
    elif rounding_mode == "trunc":
        result = in_graph_of(_trunc_divide(input, other), input, other)
    else:
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
            f"found '{rounding_mode}'"
        )
    return _finish(result, input, inplace_)


def _trunc_divide(input, other):
    floor = _ops.floor_divide(input, other)
    # Rounded down past zero where the signs differ and a rest remains.
    low = _ops.logical_and(_ops.lt(floor, 0), _ops.ne(_ops.mul(floor, other), input))
    return _ops.where(low, floor + 1, floor)


_alias("div", "divide", "true_divide")


@function(out=True)
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return other - (input if alpha == 1 else input * alpha)


@both(out=True)
def square(input):
    """input * input; int64 for bool, as pow()."""
    return _ops.pow(input, 2) if input.dtype is _C.bool else input * input


inplace_of(square)


_alias("trunc", "fix")


@both(out=True)
def frac(input):
    """The part behind the point."""
    return input - _ops.trunc(input)


@overload("round")
@accepts_out
def _round(input, *, decimals=0, inplace_=False):
    scale = 10.0**decimals
    return _finish(_ops.round(input * scale) / scale, input, inplace_)


@both(out=True)
def logit(input, eps=None):
    """log(input / (1 - input)), input limited to [eps, 1 - eps] if given."""
    if not input.is_floating_point():
        input = _ops.to(input, get_default_dtype())
    if eps is not None and eps <= 0.5:
        input = _ops.clamp(input, eps, 1 - eps)
    elif eps is not None:
        # The limits have changed places: what is below both becomes eps.
        inner = _ops.where(_ops.gt(input, 1 - eps), 1 - eps, input)
        input = _ops.where(_ops.lt(input, eps), eps, inner)
    return _ops.log(input / (1 - input))


@both(out=True)
def logaddexp(input, other):
    """log(exp(input) + exp(other)) without overflow."""
    high = _ops.maximum(input, other)
    return high + _ops.log1p(_ops.exp(_ops.neg(distance(input, other))))


def distance(input, other):
    """|input - other|, and 0 between equal infinities."""
    gap = _ops.abs(input - other)
    same = _ops.logical_and(_ops.eq(input, other), isinf(input))
    return _ops.where(same, 0.0, gap)


def times_log(input, other, log, pole):
    """input * log(other): 0 for an input of 0 where the logarithm, with its pole at
    `pole`, is not finite; NaN for any NaN."""
    dtype = result_type(input, other)
    if not dtype.is_floating_point:
        dtype = get_default_dtype()
    input, other = (
        _ops.to(x, dtype) if isinstance(x, Tensor) else _ops.full((), x, dtype=dtype)
        for x in (input, other)
    )
    far = _ops.logical_or(_ops.le(other, pole), _ops.eq(other, math.inf))
    nothing = _ops.logical_and(_ops.eq(input, 0), far)
    # Also without a gradient there, as in PyTorch.
    logs = log(_ops.where(nothing, pole + 1.0, other))
    if other.requires_grad and _C.is_grad_enabled():
        # But for 0 at the pole, whose slope is 0 / 0: a root's, times 0.
        pole_itself = _ops.logical_and(nothing, _ops.eq(other, pole))
        root = _ops.sqrt(_ops.where(pole_itself, other - pole, 1.0))
        logs = _ops.where(pole_itself, root, logs)
    return _ops.mul(input, logs)


@both(out=True)
def xlogy(input, other):
    """input * log(other), 0 where input is 0."""
    return times_log(input, other, _ops.log, 0.0)


@both(out=True)
def deg2rad(input):
    """Degrees to radians."""
    return input * (math.pi / 180)


@both(out=True)
def rad2deg(input):
    """Radians to degrees."""
    return input * (180 / math.pi)


@both(out=True)
def addcmul(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2."""
    product = tensor1 * tensor2
    result = input + (product if value == 1 else product * value)
    return _C.show_as(result, "AddcmulBackward0", input, tensor1, tensor2)


@both(out=True)
def addcdiv(input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2."""
    quotient = tensor1 / tensor2
    result = input + (quotient if value == 1 else quotient * value)
    return _C.show_as(result, "AddcdivBackward0", input, tensor1, tensor2)


@both(out=True)
def lerp(input, end, weight):
    """input + weight * (end - input)."""
    result = input + weight * (end - input)
    return _C.show_as(result, "LerpBackward0", input, end)


for _f in (addcmul, addcdiv, lerp, logit):
    inplace_of(_f)


@overload("clamp")
@accepts_out
def _clamp(input, min=None, max=None, *, inplace_=False):
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        raise TypeError("clamp() takes numbers or tensors as min and max")
    result = input
    if min is not None:
        result = _bounded(result, min, _ops.maximum, _ops.lt)
    if max is not None:
        result = _bounded(result, max, _ops.minimum, _ops.gt)
    return _finish(result, input, inplace_)


def _bounded(input, bound, choose, beyond):
    differentiated = isinstance(bound, Tensor) and bound.requires_grad
    if not _C.is_grad_enabled() or not (differentiated or input.requires_grad):
        return choose(input, bound)
    # Of two equal ones the input has the whole gradient; minimum() would share it.
    dtype = result_type(input, bound)
    bound = bound if isinstance(bound, Tensor) else _C.tensor(bound)
    where = _ops.logical_or(beyond(input, bound), _ops.ne(bound, bound))
    return _ops.where(where, _ops.to(bound, dtype), _ops.to(input, dtype))


_alias("clamp", "clip")


@both(out=True)
def clamp_min(input, min):
    """Limited to at least min."""
    if isinstance(min, Tensor):
        return _clamp(input, min)
    return _ops.clamp(input, min, None)


@both(out=True)
def clamp_max(input, max):
    """Limited to at most max."""
    if isinstance(max, Tensor):
        return _clamp(input, None, max)
    return _ops.clamp(input, None, max)


inplace_of(clamp_min)
inplace_of(clamp_max)


@both(out=True)
def bitwise_not(input):
    """All bits turned; logical for bool."""
    return ~input


@both(out=True)
def isinf(input):
    """True where input is infinite; of complex numbers, where either part is."""
    if input.dtype.is_complex:
        return isinf(_ops.view_as_real(input)).any(-1)
    return _ops.logical_not(_ops.logical_or(_ops.isfinite(input), _ops.isnan(input)))


@both(out=True)
def isposinf(input):
    """True where input is +inf."""
    return _ops.eq(input, math.inf)


@both(out=True)
def isneginf(input):
    """True where input is -inf."""
    return _ops.eq(input, -math.inf)


@both(out=True)
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers: nan, and posinf and neginf or the
    largest of the element type. Complex numbers are replaced part by part."""
    if input.dtype.is_complex:
        parts = nan_to_num(_ops.view_as_real(input), nan, posinf, neginf)
        return _ops.view_as_complex(parts)
    if not input.is_floating_point():
        return _ops.clone(input)
    nan = 0.0 if nan is None else nan
    largest = finfo(input.dtype).max
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    result = _ops.where(_ops.isnan(input), nan, input)
    result = _ops.where(_ops.eq(input, math.inf), high, result)
    return _ops.where(_ops.eq(input, -math.inf), low, result)


@both
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True where |input - other| <= atol + rtol * |other|."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    close = _ops.eq(input, other)
    if equal_nan:
        close = close | (_ops.isnan(input) & _ops.isnan(other))
    inexact = input.is_floating_point() or input.dtype.is_complex
    wide, against = (x if inexact else _ops.to(x, _C.float64) for x in (input, other))
    distance = _ops.abs(wide - against)
    near = distance <= atol + rtol * _ops.abs(against)
    return close | (near & _ops.isfinite(distance))


@both
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True if all elements are close; waits."""
    return isclose(input, other, rtol, atol, equal_nan).all().item()


@both
def equal(input, other):
    """True if shape and all elements agree; waits."""
    if input.shape != other.shape:
        return False
    return _ops.eq(input, other).all().item()


@overload("where")
def _where(condition, *args, inplace_=False, **kwargs):
    if not args and not kwargs:
        return _C.Tensor.nonzero(condition, as_tuple=True)
    raise TypeError("where() takes a bool tensor and two tensors or numbers")


def _where_method(self, condition, y):
    """This tensor where condition, else y."""
    return _ops.where(condition, self, y)


Tensor.where = _where_method
