# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementary functions of complex numbers that are no ops of the daemon's.

Branch cuts and limits at infinities and NaN are those of C's <complex.h>, as the
standard asks; the formulas of the inverse functions are Kahan's ("Branch cuts for
complex elementary functions", 1987). Parts are put together with complex(), never by
arithmetic, which loses the sign of a zero.
"""

import math

import holdfast
from holdfast import where


def _parts(z):
    return holdfast.unbind(holdfast.view_as_real(z), -1)


def _of(re, im):
    return holdfast.complex(re, im)


def _times_i(z):
    x, y = _parts(z)
    return _of(-y, x)


def _by_i(z):
    x, y = _parts(z)
    return _of(y, -x)


def _product(a, b):
    """a * b, but 0 where b is, though a be infinite or NaN."""
    return where(b == 0, b, a * b)


def _with_limits(name, limits):
    """The package's function, but `limits(x, y)` where a part of z = x + iy is infinite
    or NaN: the daemon's ops do not look for those."""
    own = getattr(holdfast, name)

    def function(z):
        x, y = _parts(z)
        finite = holdfast.logical_and(holdfast.isfinite(x), holdfast.isfinite(y))
        return where(finite, own(z), _of(*limits(x, y)))

    return function


def _infinity_like(x):
    return holdfast.copysign(holdfast.full_like(x, math.inf), x)


def _is_unbounded(y):
    return holdfast.logical_not(holdfast.isfinite(y))


def _exp_limits(x, y):
    size = holdfast.exp(x)
    re, im = _product(size, holdfast.cos(y)), _product(size, holdfast.sin(y))
    unbounded = _is_unbounded(y)
    re = where(holdfast.logical_and(x == math.inf, unbounded), x, re)
    vanishes = holdfast.logical_and(x == -math.inf, unbounded)
    return where(vanishes, 0.0, re), where(vanishes, 0.0, im)


def _tanh_limits(x, y):
    # Beside an infinite x the imaginary part is 0; beside a NaN, as y is.
    re = where(holdfast.isinf(x), holdfast.copysign(holdfast.ones_like(x), x), x)
    re = where(holdfast.logical_and(_is_unbounded(y), holdfast.isfinite(x)), y * 0, re)
    re = where(x == 0, x, re)
    im = where(y == 0, y, x * y * math.nan)
    return re, where(
        holdfast.isinf(x), holdfast.copysign(holdfast.zeros_like(y), y), im
    )


def _sqrt_limits(x, y):
    nothing = y * 0
    re = where(x == -math.inf, holdfast.abs(nothing), x + nothing)
    im = where(x == -math.inf, _infinity_like(y), nothing + where(x == x, 0.0, x))
    tall = holdfast.isinf(y)
    re = where(holdfast.logical_or(tall, x == math.inf), math.inf, re)
    return re, where(tall, y, im)


exp = _with_limits("exp", _exp_limits)
sqrt = _with_limits("sqrt", _sqrt_limits)
tanh = _with_limits("tanh", _tanh_limits)


def cosh(z):
    """cosh x cos y + i sinh x sin y."""
    x, y = _parts(z)
    even, odd = holdfast.cosh(x), holdfast.sinh(x)
    re = even * holdfast.cos(y)
    re = where(holdfast.logical_and(holdfast.isinf(x), _is_unbounded(y)), even, re)
    sine = holdfast.sin(y)
    im = where(x == 0, x * where(y < 0, -1.0, 1.0), _product(odd, sine))
    return _of(re, im)


def sinh(z):
    """sinh x cos y + i cosh x sin y."""
    x, y = _parts(z)
    odd = holdfast.sinh(x)
    re = where(x == 0, x, odd * holdfast.cos(y))
    re = where(holdfast.logical_and(holdfast.isinf(x), _is_unbounded(y)), odd, re)
    return _of(re, _product(holdfast.cosh(x), holdfast.sin(y)))


def cos(z):
    """cosh(iz)."""
    return cosh(_times_i(z))


def sin(z):
    """sinh(iz) / i."""
    return _by_i(sinh(_times_i(z)))


def tan(z):
    """tanh(iz) / i."""
    return _by_i(tanh(_times_i(z)))


def _logarithm(base):
    def log(z):
        x, y = _parts(holdfast.log(z))
        return _of(x / math.log(base), y / math.log(base))

    return log


log2 = _logarithm(2)
log10 = _logarithm(10)


def log1p(z):
    """log(1 + z), exact near 0."""
    x, y = _parts(z)
    near = 0.5 * holdfast.log1p(x * (2 + x) + y * y)
    far = holdfast.log(holdfast.hypot(1 + x, y))
    small = holdfast.logical_and(holdfast.abs(x) < 0.5, holdfast.abs(y) < 0.5)
    return _of(where(small, near, far), holdfast.atan2(y, 1 + x))


def expm1(z):
    """exp(z) - 1, exact near 0."""
    x, y = _parts(z)
    half = holdfast.sin(y / 2)
    re = holdfast.expm1(x) * holdfast.cos(y) - 2 * half * half
    re = where(y == 0, holdfast.expm1(x), re) + 0.0
    im = _product(holdfast.exp(x), holdfast.sin(y))
    unbounded = holdfast.logical_not(holdfast.isfinite(y))
    re = where(holdfast.logical_and(x == math.inf, unbounded), x, re)
    vanishes = x == -math.inf
    re = where(vanishes, -1.0, re)
    im = where(holdfast.logical_and(vanishes, unbounded), 0.0, im)
    return _of(re, im)


def _roots(x, y):
    """The parts of sqrt(1 - z) and sqrt(1 + z)."""
    return (
        *_parts(holdfast.sqrt(_of(1 - x, -y))),
        *_parts(holdfast.sqrt(_of(1 + x, y))),
    )


def _patched(re, im, x, y, at_infinity, at_imaginary_nan):
    """The limits where a part of z = x + iy is infinite; and the real part where z is
    0 + NaN i."""
    infinite = holdfast.logical_or(holdfast.isinf(x), holdfast.isinf(y))
    re = where(infinite, at_infinity[0], re)
    im = where(infinite, at_infinity[1], im)
    no_real = holdfast.logical_and(x == 0, holdfast.isnan(y))
    return where(no_real, at_imaginary_nan, re), im


def _acos_parts(x, y):
    a, b, c, d = _roots(x, y)
    re = 2 * holdfast.atan2(a, c)
    im = holdfast.asinh(c * b - d * a)
    limits = holdfast.atan2(holdfast.abs(y), x), -_infinity_like(y)
    return _patched(re, im, x, y, limits, math.pi / 2)


def acos(z):
    """In the strip from 0 to pi."""
    return _of(*_acos_parts(*_parts(z)))


def acosh(z):
    """i acos(z) or -i acos(z), with a real part that is not negative."""
    x, y = _parts(z)
    re, im = _acos_parts(x, y)
    return _of(holdfast.abs(im), holdfast.copysign(re, y))


def _asin_parts(x, y):
    a, b, c, d = _roots(x, y)
    re = holdfast.atan2(x, a * c - b * d)
    im = holdfast.asinh(a * d - b * c)
    limits = holdfast.atan2(x, holdfast.abs(y)), _infinity_like(y)
    return _patched(re, im, x, y, limits, x)


def asin(z):
    """In the strip from -pi/2 to pi/2."""
    return _of(*_asin_parts(*_parts(z)))


def asinh(z):
    """asin(iz) / i."""
    x, y = _parts(z)
    re, im = _asin_parts(-y, x)
    return _of(im, -re)


def _atanh_parts(x, y):
    # In the right half, the left one by symmetry: nothing is cancelled there.
    size = holdfast.abs(x)
    gap = 1 - size
    re = holdfast.log1p(4 * size / (gap * gap + y * y)) / 4
    im = holdfast.atan2(2 * y, gap * (1 + size) - y * y) / 2
    re = holdfast.copysign(re, x)
    right_angle = holdfast.copysign(holdfast.full_like(y, math.pi / 2), y)
    limits = (
        holdfast.copysign(holdfast.zeros_like(x), x),
        where(holdfast.isnan(y), y, right_angle),
    )
    return _patched(re, im, x, y, limits, x)


def atanh(z):
    """Imaginary parts in -pi/2 to pi/2."""
    return _of(*_atanh_parts(*_parts(z)))


def atan(z):
    """atanh(iz) / i."""
    x, y = _parts(z)
    re, im = _atanh_parts(-y, x)
    return _of(im, -re)
