# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Complex numbers: parts, magnitude and phase, construction."""

import math

from holdfast import _C
from holdfast._registry import both, function, method

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
    """The last two dimensions swapped, and conjugated."""
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
    return _ops.where(zero, 0.0, phase)


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
