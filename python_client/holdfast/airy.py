# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Airy function, by the approximations of Moshier's Cephes library (1984-2000)."""

import math

from holdfast import _C
from holdfast._registry import accepts_out

_ops = _C.ops

# Rational approximations: above 2.09 in 1 / zeta, below -2.09 in 1 / zeta^2, zeta being
# 2/3 |x|^(3/2). Highest power first.
_TOP = (
    0.346538101525629,
    12.007595273964581,
    76.27960536152345,
    168.08922493463058,
    159.75639135016442,
    70.53609068404442,
    14.026469116338967,
    1.0,
)
_BOTTOM = (
    0.5675945326387702,
    14.75625625848472,
    84.51389701414746,
    177.31808814540045,
    164.2346928715297,
    71.47784008255756,
    14.095913560783403,
    1.0,
)
_SINE_TOP = (
    -0.1316963234183318,
    -0.6264565444319123,
    -0.6931580360369335,
    -0.2797799815451191,
    -0.04919001326095003,
    -0.004062659235948854,
    -0.0001592764962392621,
    -2.776491081552329e-06,
    -1.6778769848911465e-08,
)
_SINE_BOTTOM = (
    1.0,
    13.356042070655324,
    32.682503279522464,
    26.736704094149957,
    9.187074029072596,
    1.4752914677166642,
    0.11568717379518804,
    0.004402916416152112,
    7.547203482874142e-05,
    4.5185009297058035e-07,
)
_COSINE_TOP = (
    0.01973399320916857,
    0.39110302961568827,
    1.0657989759959559,
    0.9391692298166502,
    0.35146565610554764,
    0.06338889196289255,
    0.005858041130483885,
    0.000282851600836737,
    6.98793669997261e-06,
    8.117892395543892e-08,
    3.415517847659236e-10,
)
_COSINE_BOTTOM = (
    1.0,
    9.30892908077442,
    19.835292871831214,
    15.564662893286462,
    5.476860694229755,
    0.9542936116189619,
    0.08645808263523921,
    0.004126565238242226,
    0.00010125908511650914,
    1.1716673321441352e-06,
    4.9183457006293e-09,
)
# Terms of the power series between them.
_TERMS = 24


def _polynomial(x, coefficients):
    result = coefficients[0]
    for c in coefficients[1:]:
        result = x * result + c
    return result


def _oscillating(x):
    """Ai below -2.09."""
    root = _ops.sqrt(-x)
    zeta = root * root * root * (2.0 / 3.0)
    z = 1.0 / zeta
    square = z * z
    sine = _polynomial(square, _SINE_TOP) / _polynomial(square, _SINE_BOTTOM)
    cosine = _polynomial(square, _COSINE_TOP) / _polynomial(square, _COSINE_BOTTOM)
    turn = zeta + 0.25 * math.pi
    value = _ops.sin(turn) * (1.0 + square * sine) - _ops.cos(turn) * (z * cosine)
    return value * 0.5641895835477563 / _ops.sqrt(root)


def _falling(x):
    """Ai above 2.09."""
    root = _ops.sqrt(x)
    zeta = root * x * (2.0 / 3.0)
    z = 1.0 / zeta
    ratio = _polynomial(z, _TOP) / _polynomial(z, _BOTTOM)
    return ratio * _ops.exp(-zeta) * (0.5641895835477563 / 2) / _ops.sqrt(root)


def _series(x):
    """Ai near 0: Maclaurin's series."""
    cube = x * x * x
    even = m = _ops.full((), 1.0, dtype=x.dtype)
    odd = n = x
    for k in range(3, 3 * _TERMS, 3):
        m = m * cube * (1.0 / (k * (k - 1)))
        n = n * cube * (1.0 / (k * (k + 1)))
        even, odd = even + m, odd + n
    return even * 0.3550280538878172 - odd * 0.2588194037928068


@accepts_out
def airy_ai(input):
    """Airy function Ai(x); NaN of infinities. Without gradients, as in PyTorch."""
    x = input.detach()
    if not x.is_floating_point():
        x = _ops.to(x, _C.float32)
    low, high = _ops.lt(x, -2.09), _ops.ge(x, 2.09)
    # Each formula sees what it is made for, so that none overflows.
    near = _series(_ops.where(_ops.logical_or(low, high), 0.0, x))
    result = _ops.where(low, _oscillating(_ops.where(low, x, -3.0)), near)
    result = _ops.where(high, _falling(_ops.where(high, x, 3.0)), result)
    infinite = _ops.eq(_ops.abs(x), math.inf)
    return _ops.where(infinite, math.nan, result)
