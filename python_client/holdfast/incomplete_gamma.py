# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x).

Elementwise, in float64 whatever the type, by a fixed number of ops (about 600): nobody
waits. Where which form holds:

    a > 12, |eta| < 1   Temme's uniform expansion, eta^2 / 2 = x/a - 1 - log(x/a)
                        (N. M. Temme, 1979; its coefficients are derived below)
    x <= a, or x < 3    P by its power series; Q where a is small by its own
    elsewhere           Q by Legendre's continued fraction
"""

import functools
import math
from fractions import Fraction

from holdfast import _C
from holdfast._registry import both, inplace_of
from holdfast.autograd.function import Function
from holdfast.dtypes import result_type
from holdfast.shapes import broadcast_tensors

_ops = _C.ops
Tensor = _C.Tensor

_LARGE = 12.0  # from this shape on Temme's expansion and Stirling's are exact
_SMALL_X = 3.0  # below, the continued fraction needs too many terms
_TINY_A = 0.5  # up to this shape Q is not taken from 1
# Terms that float64 needs at the worst places of the regions above.
_TEMME_TERMS, _SERIES_TERMS, _ALTERNATING_TERMS, _FRACTION_TERMS = 30, 48, 32, 40

_EULER = 0.57721566490153286061


@functools.cache
def _temme_coefficients():
    """Of eta / (x/a - 1) as a power series in eta.

    mu = x/a - 1 obeys mu mu' = eta (1 + mu), which gives its coefficients one by one.
    """
    count = _TEMME_TERMS + 2
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, count + 1):
        known = sum(mu[j] * (n + 1 - j) * mu[n + 1 - j] for j in range(2, n))
        mu.append((mu[n - 1] - known) / (n + 1))
    quotient = [Fraction(1)]
    for n in range(1, count):
        quotient.append(-sum(mu[j + 1] * quotient[n - j] for j in range(1, n + 1)))
    return [float(c) for c in quotient]


@functools.cache
def _log_gamma_coefficients():
    """(zeta(k) - 1) / k with their signs, k = 2, 3, ...: of log gamma(1 + a) beside
    -log(1 + a) + (1 - Euler's constant) a."""

    def zeta_less_one(k):
        n = 100
        head = sum(i**-k for i in range(2, n))
        tail = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12
        return head + tail - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720

    return [(-1) ** k * zeta_less_one(k) / k for k in range(2, 30)]


def _log_gamma_1p(a):
    """log gamma(1 + a) for 0 <= a <= 1/2, relative to a."""
    total = 0.0
    for c in reversed(_log_gamma_coefficients()):
        total = (total + c) * a
    return (total + (1 - _EULER)) * a - _ops.log1p(a)


def _stirling(a):
    """gamma(a) over its main part sqrt(2 pi / a) (a / e)^a, for a > 12."""
    w = 1 / (a * a)
    bends = (((w / 1188 - 1 / 1680) * w + 1 / 1260) * w - 1 / 360) * w + 1 / 12
    return _ops.exp(bends / a)


def _temme(a, half_eta_squared, eta):
    """(P, Q) of shapes above 12 near x = a."""
    sums = [0.0, 0.0]  # coefficients n + 1 and n of S(eta), of which n = 0 is last
    total = 0.0
    f = _temme_coefficients()
    over = 1 / a
    for n in range(_TEMME_TERMS, -1, -1):
        sums = [sums[1], f[n + 1] + (n + 2) * sums[0] * over]
        total = total * eta + sums[1]
    scale = _ops.exp(-a * half_eta_squared) / _ops.sqrt(2 * math.pi * a)
    rest = scale * total / _stirling(a)
    y = eta * _ops.sqrt(a / 2)
    return 0.5 * _ops.erfc(-y) - rest, 0.5 * _ops.erfc(y) + rest


def _series(a, x):
    """sum of x^n / ((a + 1) ... (a + n)) over n >= 0."""
    total = 1.0
    for n in range(_SERIES_TERMS, 0, -1):
        total = total * (x / (a + n)) + 1.0
    return total


def _fraction(a, x):
    """gamma(a, x) e^x / x^a for x >= 3 and x > a."""
    b = x - a
    total = b + (2 * _FRACTION_TERMS + 1)
    for n in range(_FRACTION_TERMS, 0, -1):
        total = (b + (2 * n - 1)) - (n - a) * n / total
    return 1 / total


def _small_q(a, x):
    """Q for a <= 1/2 and x < 3, relative to a where a is next to nothing."""
    term, total = 1.0, 0.0
    for n in range(1, _ALTERNATING_TERMS):
        term = term * (x / -n)
        total = total + term / (a + n)
    log_scale = a * _ops.log(x) - _log_gamma_1p(a)
    return -_ops.expm1(log_scale) - _ops.exp(log_scale) * a * total


def _both_parts(a, x):
    """(P, Q) of finite positive a and x in float64."""
    large = _ops.gt(a, _LARGE)
    big_a = _ops.where(large, a, 20.0)
    mu = _ops.where(large, (x - a) / big_a, 0.0)
    # log1p() is exact near 0, log() near -1.
    ratio = _ops.where(large, x / big_a, 1.0)
    logarithm = _ops.where(_ops.lt(mu, -0.5), _ops.log(ratio), _ops.log1p(mu))
    half_eta_squared = _ops.clamp(mu - logarithm, 0.0, None)
    eta = _ops.copysign(_ops.sqrt(2 * half_eta_squared), mu)
    near = large & _ops.lt(half_eta_squared, 0.5)
    temme_p, temme_q = _temme(
        big_a,
        _ops.where(near, half_eta_squared, 0.0),
        _ops.where(near, eta, 0.0),
    )

    # x^a e^-x / gamma(a + 1)
    few_a = _ops.where(large, 1.0, a)
    few = _ops.exp(few_a * _ops.log(x) - x - _ops.lgamma(few_a + 1))
    many = _ops.exp(-big_a * half_eta_squared) / (
        _ops.sqrt(2 * math.pi * big_a) * _stirling(big_a)
    )
    density = _ops.where(large, many, few)

    rising = ~near & (_ops.le(x, a) | _ops.lt(x, _SMALL_X))
    p = density * _series(_ops.where(rising, a, 1.0), _ops.where(rising, x, 1.0))
    falling = ~near & ~rising
    q = density * (
        a * _fraction(_ops.where(falling, a, 1.0), _ops.where(falling, x, 3.0))
    )
    tiny = rising & _ops.le(a, _TINY_A) & _ops.lt(x, _SMALL_X)
    other = _small_q(_ops.where(tiny, a, 0.5), _ops.where(tiny, x, 1.0))
    p, q = (
        _ops.where(rising, p, 1 - q),
        _ops.where(rising, _ops.where(tiny, other, 1 - p), q),
    )
    return _ops.where(near, temme_p, p), _ops.where(near, temme_q, q)


def _values(a, x, upper):
    """P, or Q if `upper`, of tensors of float64, with the limits at the edges."""
    bad = _ops.isnan(a) | _ops.isnan(x) | _ops.lt(a, 0) | _ops.lt(x, 0)
    bad = (
        bad
        | (_ops.eq(a, 0) & _ops.eq(x, 0))
        | (_ops.eq(a, math.inf) & _ops.eq(x, math.inf))
    )
    zero = _ops.eq(x, 0) | _ops.eq(a, math.inf)  # P is 0
    one = _ops.eq(a, 0) | _ops.eq(x, math.inf)  # P is 1
    plain = ~(bad | zero | one)
    parts = _both_parts(_ops.where(plain, a, 1.0), _ops.where(plain, x, 1.0))
    value = _ops.where(plain, parts[upper], _ops.to(zero if upper else one, a.dtype))
    return _ops.where(bad, math.nan, _ops.clamp(value, 0.0, 1.0))


class _IncompleteGamma(Function):
    @staticmethod
    def forward(ctx, a, x, upper):
        ctx.upper = upper
        ctx.save_for_backward(a, x)
        wide = (_ops.to(t, _C.float64) for t in broadcast_tensors(a, x))
        return _ops.to(_values(*wide, upper), a.dtype)

    @staticmethod
    def backward(ctx, gradient):
        if ctx.needs_input_grad[0]:
            name = "igammac" if ctx.upper else "igamma"
            raise NotImplementedError(
                f"the derivative for '{name}: input' is not implemented."
            )
        a, x = ctx.saved_tensors
        slope = gradient * _ops.exp((a - 1) * _ops.log(x) - x - _ops.lgamma(a))
        return None, (-slope if ctx.upper else slope).sum_to_size(x.shape), None


def _of_one_type(input, other):
    dtype = result_type(input, other)
    if dtype.is_complex:
        raise RuntimeError(f"igamma is not there for complex numbers. Got {dtype}.")
    dtype = dtype if dtype.is_floating_point else _C.float32
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    options = {"dtype": dtype, **({"device": tensors[0].device} if tensors else {})}
    return (
        _ops.to(t, dtype) if isinstance(t, Tensor) else _C.tensor(t, **options)
        for t in (input, other)
    )


@both(out=True)
def igamma(input, other):
    """P(input, other), the regularised lower incomplete gamma function. Not
    differentiable with respect to `input`; NaN where an argument is negative."""
    return _IncompleteGamma.apply(*_of_one_type(input, other), False)


@both(out=True)
def igammac(input, other):
    """Q(input, other) = 1 - igamma(input, other), exact where it is small. Not
    differentiable with respect to `input`."""
    return _IncompleteGamma.apply(*_of_one_type(input, other), True)


inplace_of(igamma)
inplace_of(igammac)
