# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gamma random numbers, by Marsaglia & Tsang (2000)."""

import math

import holdfast
from holdfast import _C
from holdfast.autograd.function import Function, once_differentiable
from holdfast.distributions.gamma_series import log_gamma_slope

_ops = _C.ops


def _proposals(shape):
    """(numbers, which of them count) for a 1-D tensor of shape parameters >= 1:
    d v with v = (1 + x / sqrt(9 d))^3, d = shape - 1/3, x normal."""
    count = tuple(shape.shape)
    d = shape - 1 / 3
    x = _ops.randn(count, dtype=shape.dtype)
    v = (1 + x * _ops.rsqrt(9 * d)) ** 3
    inside = _ops.gt(v, 0)
    v = _ops.where(inside, v, 1.0)
    uniform = 1 - _ops.rand(count, dtype=shape.dtype)  # (0, 1]
    accepted = _ops.log(uniform) < 0.5 * x**2 + d * (1 - v + _ops.log(v))
    return d * v, _ops.logical_and(inside, accepted)


def standard_gamma(concentration):
    """Gamma random numbers of rate 1 in the shape and type of `concentration`, with
    gradients to it. NaN where concentration is negative or NaN.

    Computed in float64. More than 95% of proposals count; the rest are drawn
    again, each round waiting for how many there are.
    """
    return _ops.to(log_gamma(concentration).exp(), concentration.dtype)


def log_gamma(concentration):
    """The logarithms of standard_gamma()'s numbers in float64, which are finite
    where the numbers are too small for any type."""
    return _LogGamma.apply(_ops.to(concentration, _C.float64))


class _LogGamma(Function):
    @staticmethod
    def forward(ctx, concentration):
        drawn = _draw(concentration)
        ctx.save_for_backward(concentration, drawn)
        return drawn

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient * log_gamma_slope(*ctx.saved_tensors)


def dirichlet(concentration):
    """Vectors along the last dimension that are above zero and sum to 1, with
    gradients to their concentrations, in whose shape and type they come."""
    # Of logarithms, since all K numbers may be too small to divide.
    parts = _ops.to(_ops.softmax(log_gamma(concentration), -1), concentration.dtype)
    return _ops.clamp(parts, holdfast.finfo(parts.dtype).tiny, None)


def _draw(concentration):
    shape = tuple(concentration.shape)
    alpha = concentration.reshape((-1,))
    # A number of shape a + 1 times uniform^(1/a) has shape a.
    small = _ops.lt(alpha, 1)
    raised = _ops.where(small, alpha + 1, alpha)
    valid = _ops.logical_and(_ops.ge(alpha, 0), _ops.isfinite(alpha))
    raised = _ops.where(valid, raised, 1.0)
    result, accepted = _proposals(raised)
    while not _ops.all(accepted).item():
        rejected = _ops.logical_not(accepted)
        again, counts = _proposals(raised[rejected])
        result[rejected] = again
        accepted[rejected] = counts
    uniform = 1 - _ops.rand(tuple(alpha.shape), dtype=_C.float64)
    boost = _ops.where(small, _ops.log(uniform) / alpha, 0.0)
    return _ops.where(valid, _ops.log(result) + boost, math.nan).reshape(shape)
