# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Complex numbers: parts, magnitude and phase, construction."""

import math

from holdfast import _C
from holdfast._registry import both, function, method, overload
from holdfast.constants import in_graph_of

_ops = _C.ops
Tensor = _C.Tensor


def _require_complex(name, input):
    if not input.dtype.is_complex:
        raise RuntimeError(
            f"{name} is not implemented for tensors with non-complex dtypes. "
            f"Got {input.dtype}."
        )


@both
def real(input):
    """Real parts, as a view; a real tensor is its own."""
    if not input.dtype.is_complex:
        return input
    return _ops.select(_ops.view_as_real(input), -1, 0)


@both
def imag(input):
    """Imaginary parts of a complex tensor, as a view."""
    _require_complex("imag", input)
    return _ops.select(_ops.view_as_real(input), -1, 1)


Tensor.real = property(real)
Tensor.imag = property(imag)


@both(names=("conj_physical",), out=True)
def conj(input):
    """Complex conjugate; a real tensor is its own."""
    return _ops.conj(input) if input.dtype.is_complex else input


@both
def resolve_conj(input):
    """The tensor: conjugation is never lazy here."""
    return input


@method
def is_conj(self):
    """False: conjugation is never lazy here."""
    return False


@both
def adjoint(input):
    """The last two dimensions swapped, and conjugated; a number conjugated."""
    if input.dim() == 0:
        return conj(input)
    return conj(_ops.transpose(input, -2, -1))


Tensor.mH = property(adjoint)


@both(out=True)
def angle(input):
    """Phase in (-pi, pi]; of real numbers 0 or pi, NaN of NaN."""
    if input.dtype.is_complex:
        from holdfast import atan2

        return atan2(imag(input), real(input))
    if not input.is_floating_point():
        input = _ops.to(input, _C.float32)
    phase = _ops.where(_ops.lt(input, 0), math.pi, _ops.mul(input, 0.0).detach())
    zero = _ops.logical_and(_ops.ge(input, 0), _ops.logical_not(_ops.isnan(input)))
    return in_graph_of(_ops.where(zero, 0.0, phase), input)


@function(out=True)
def complex(real, imag):
    """real + imag j; both float32 or both float64, broadcast together."""
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype} but got scalar type "
            f"{imag.dtype} for second argument"
        )
    from holdfast import broadcast_tensors

    parts = [_ops.unsqueeze(t, -1) for t in broadcast_tensors(real, imag)]
    return _ops.view_as_complex(_ops.cat(parts, -1))


@function(out=True)
def polar(abs, angle):
    """abs (cos angle + j sin angle); both float32 or both float64."""
    if not (abs.is_floating_point() and angle.is_floating_point()):
        raise RuntimeError(
            "Expected both inputs to be Float or Double tensors but got "
            f"{abs.dtype} and {angle.dtype}"
        )
    return complex(_ops.mul(abs, _ops.cos(angle)), _ops.mul(abs, _ops.sin(angle)))


@both(names=("sgn",), out=True)
def _sgn(input):
    """x / |x|, and 0 for 0; for real numbers sign()."""
    if not input.dtype.is_complex:
        return _ops.sign(input)
    size = _ops.abs(input)
    return _ops.where(_ops.eq(size, 0), 0, _ops.div(input, size))


@both
def isreal(input):
    """True where the imaginary part is zero."""
    if not input.dtype.is_complex:
        return _ops.logical_or(_ops.eq(input, input), True)
    return _ops.eq(imag(input), 0)


@overload("view")
def _view(input, *args, inplace_=False, **kwargs):
    if len(args) == 1 and type(args[0]) is _C.dtype and not kwargs:
        return _view_as_type(input, args[0])
    if not args and list(kwargs) == ["dtype"] and type(kwargs["dtype"]) is _C.dtype:
        return _view_as_type(input, kwargs["dtype"])
    raise TypeError("view() takes the sizes of the result, as ints, or a dtype")


_PARTS = {_C.complex64: _C.float32, _C.complex128: _C.float64}


def _view_as_type(input, dtype):
    """The same memory as elements of another type. Complex numbers as their parts and
    back are differentiable; everything else is outside the graph, and waits."""
    shape, own = tuple(input.shape), input.dtype
    if dtype == own:
        return _ops.view(input, shape)
    sizes, strides, offset = _as_type(input, dtype)
    if _PARTS.get(own) == dtype:
        return _ops.view(_ops.view_as_real(input), sizes)
    if _PARTS.get(dtype) == own:
        return _ops.view_as_complex(_ops.view(input, (*sizes, 2)))
    token, device = _C.share(input, False), input._device_number
    return _C.open_shared(token, dtype, sizes, strides, offset, False, device)


def _as_type(input, dtype):
    """(sizes, strides, offset) of the view; RuntimeError where there is none."""
    shape, strides = tuple(input.shape), tuple(input.stride())
    own, offset = input.dtype, input.storage_offset()
    if dtype.itemsize == own.itemsize:
        return shape, strides, offset
    why = f"to view {own} as {dtype} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {why}")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {why}, but got {strides[-1]}")
    if dtype.itemsize < own.itemsize:
        times = own.itemsize // dtype.itemsize
        wide = tuple(s * times for s in strides[:-1])
        return (*shape[:-1], shape[-1] * times), (*wide, 1), offset * times
    parts = dtype.itemsize // own.itemsize
    numbers = [("size(-1)", shape[-1]), ("storage_offset()", offset)]
    numbers += [(f"stride({i})", s) for i, s in enumerate(strides[:-1])]
    for name, number in numbers:
        if number % parts:
            raise RuntimeError(
                f"self.{name} must be divisible by {parts} {why}, but got {number}"
            )
    narrow = tuple(s // parts for s in strides[:-1])
    return (*shape[:-1], shape[-1] // parts), (*narrow, 1), offset // parts
