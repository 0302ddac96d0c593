# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The regularised incomplete gamma function P(a, x) and its slopes, from the series

    P(a, x) = x^a e^-x / gamma(a + 1) * S,   S = sum over n of x^n / ((a+1) ... (a+n))

whose terms are all positive. Everything is in float64 and outside the graph; the
loop waits once every 32 terms to see whether it may stop.
"""

import math

import holdfast
from holdfast import _C
from holdfast.autograd.function import Function, once_differentiable

_ops = _C.ops

_TERMS = 32  # between looks
_MOST = 200_000
# Above this shape the series is long, and the cube root of a gamma number is normal
# (Wilson and Hilferty): slopes are then good to three digits or more.
_LARGE = 1e4


def _series(a, x):
    """(S, dS/da) of tensors of one shape."""
    term = holdfast.ones_like(x)
    total, slope = term, holdfast.zeros_like(x)
    harmonic = slope  # sum of 1 / (a + k) up to n
    for n in range(1, _MOST):
        over = a + n
        term = term * (x / over)
        harmonic = harmonic + _ops.reciprocal(over)
        change = term * harmonic
        total, slope = total + term, slope - change
        if n % _TERMS == 0:
            going = (change > 1e-17 * _ops.abs(slope)) | (term > 1e-17 * total)
            if not _ops.any(going).item():
                break
    return total, slope


def log_gamma_slope(a, log_x):
    """d log x / da of gamma numbers x of shape a and rate 1, by how P(a, x) stays."""
    large = a > _LARGE
    safe = _ops.where(large, 1.0, a)
    log_safe = _ops.where(large, 0.0, log_x)
    total, slope = _series(safe, _ops.exp(log_safe))
    few = -(total * (log_safe - _ops.digamma(safe + 1)) + slope) / safe
    d = a - 1 / 3
    root = _ops.exp((log_x - _ops.log(d)) / 3)
    many = (1 - 1.5 * (root - 1) / root) / d
    return _ops.where(large, many, few)


class _IncompleteGamma(Function):
    @staticmethod
    def forward(ctx, a, x):
        # Above this P differs from 1 by less than float64 shows.
        end = a + 12 * _ops.sqrt(a) + 60
        inside = _ops.minimum(_ops.clamp(x, 0, None), end)
        log_scale = a * _ops.log(inside) - inside - _ops.lgamma(a + 1)
        total, slope = _series(a, inside)
        value = _ops.clamp(_ops.exp(log_scale + _ops.log(total)), None, 1)
        value = _ops.where(x > 0, value, 0.0)
        ctx.save_for_backward(a, x, _ops.log(inside), value, slope / total)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        a, x, log_x, value, slope = ctx.saved_tensors
        density = _ops.exp((a - 1) * _ops.log(x) - x - _ops.lgamma(a))
        density = _ops.where(x > 0, density, 0.0)
        # d log P / da; of a P that is 0, none.
        growth = value * (log_x - _ops.digamma(a + 1) + slope)
        growth = _ops.where(value > 0, growth, 0.0)
        return gradient * growth, gradient * density


def incomplete_gamma(a, x):
    """P(a, x) in float64, of tensors of one shape; 0 for x <= 0. Has first
    derivatives. Shapes above 1e6 make it slow."""
    x = _ops.to(x, _C.float64)
    finite = _ops.isfinite(x)
    p = _IncompleteGamma.apply(_ops.to(a, _C.float64), _ops.where(finite, x, 1.0))
    odd = _ops.where(x > 0, 1.0, _ops.where(_ops.isnan(x), math.nan, 0.0))
    return _ops.where(finite, p, odd)
