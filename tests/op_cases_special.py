# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of trigonometric, hyperbolic and special functions, against NumPy and
SciPy."""

import numpy as np
import scipy.special as sp
from op_cases import away_from, case, distinct, ints

inside = away_from([], (3, 4), -0.95, 0.95)
positive = away_from([], (3, 4), 0.2, 6)
above_one = away_from([], (3, 4), 1.1, 4)
poles = away_from([-3, -2, -1, 0], (3, 4), -3.5, 5, 0.1)
nonzero = away_from([0], (3, 4))


def unary(op):
    return lambda hf, a: getattr(hf, op)(a)


for op, reference, x in [
    ("tan", np.tan, inside),
    ("asin", np.arcsin, inside),
    ("acos", np.arccos, inside),
    ("atan", np.arctan, (3, 4)),
    ("sinh", np.sinh, (3, 4)),
    ("cosh", np.cosh, (3, 4)),
    ("asinh", np.arcsinh, (3, 4)),
    ("acosh", np.arccosh, above_one),
    ("atanh", np.arctanh, inside),
    ("exp2", np.exp2, (3, 4)),
    ("log10", np.log10, positive),
    ("erfc", sp.erfc, (3, 4)),
    ("erfinv", sp.erfinv, inside),
    ("lgamma", sp.gammaln, positive),
    ("lgamma", sp.gammaln, poles),
    ("digamma", sp.digamma, positive),
    ("digamma", sp.digamma, poles),
    ("trunc", np.trunc, away_from([-2, -1, 0, 1, 2], (3, 4))),
    ("frac", lambda a: a - np.trunc(a), away_from([-2, -1, 0, 1, 2], (3, 4))),
    ("sinc", np.sinc, nonzero),
    ("entr", sp.entr, positive),
    ("ndtr", sp.ndtr, (3, 4)),
    ("arcsin", np.arcsin, inside),
    ("arccos", np.arccos, inside),
    ("arctan", np.arctan, inside),
    ("arcsinh", np.arcsinh, inside),
    ("arccosh", np.arccosh, above_one),
    ("arctanh", np.arctanh, inside),
    ("positive", np.positive, (3, 4)),
    ("deg2rad", np.deg2rad, (3, 4)),
    ("rad2deg", np.rad2deg, (3, 4)),
    ("square", np.square, (3, 4)),
]:
    case(op, unary(op), reference, x)
    data = x if isinstance(x, np.ndarray) else np.linspace(-2, 2, 12).reshape(x)
    case(
        op,
        lambda hf, a, op=op: getattr(hf, op)(a.t()[::2]),
        lambda a, f=reference: f(a.T[::2]),
        data,
        label=" strided",
        second=False,
    )
    case(op, unary(op), reference, np.zeros((0, 3)), grad=(), label=" empty")

# The functions that share a row; wide is on both sides of where formulas change.
wide = away_from([0], (4, 6), -40, 40)
growing = away_from([], (4, 6), 0.05, 40)
for op, reference, x in [
    ("bessel_j0", sp.j0, wide),
    ("bessel_j1", sp.j1, wide),
    ("bessel_y0", sp.y0, growing),
    ("bessel_y1", sp.y1, growing),
    ("i0", sp.i0, away_from([0], (3, 4), -4, 4)),
    ("i0e", sp.i0e, wide),
    ("i1", sp.i1, away_from([0], (3, 4), -4, 4)),
    ("i1e", sp.i1e, wide),
    ("modified_bessel_k0", sp.k0, away_from([], (3, 4), 0.2, 4)),
    ("modified_bessel_k1", sp.k1, away_from([], (3, 4), 0.2, 4)),
    ("scaled_modified_bessel_k0", sp.k0e, growing),
    ("scaled_modified_bessel_k1", sp.k1e, growing),
    ("erfcx", sp.erfcx, away_from([], (4, 6), -3, 40)),
    ("log_ndtr", sp.log_ndtr, away_from([], (4, 6), -30, 3)),
    ("ndtri", sp.ndtri, away_from([], (3, 4), 0.05, 0.95)),
    ("modified_bessel_i1", sp.i1, away_from([0], (3, 4), -4, 4)),
    ("spherical_bessel_j0", lambda a: sp.spherical_jn(0, a), nonzero),
]:
    case(
        "special_function",
        lambda hf, a, op=op: getattr(hf.special, op)(a),
        reference,
        x,
        label=" " + op,
    )
case("i0", unary("i0"), sp.i0, nonzero)
case(
    "special_function",
    lambda hf, a: hf.special.i0e(a.t()[::2]),
    lambda a: sp.i0e(a.T[::2]),
    wide,
    label=" strided",
    second=False,
)

case(
    "polygamma",
    lambda hf, a: hf.polygamma(2, a),
    lambda a: sp.polygamma(2, a),
    positive,
)
case(
    "mvlgamma",
    lambda hf, a: hf.mvlgamma(a, 3),
    lambda a: sp.multigammaln(a, 3)
    if a.ndim == 0
    else np.vectorize(lambda v: sp.multigammaln(v, 3))(a),
    above_one + 1,
)
case(
    "signbit",
    unary("signbit"),
    np.signbit,
    np.array([0.0, -0.0, 1, -2, np.inf]),
    grad=(),
)
case(
    "isposinf",
    unary("isposinf"),
    np.isposinf,
    np.array([np.inf, -np.inf, np.nan, 1]),
    grad=(),
)
case(
    "isneginf",
    unary("isneginf"),
    np.isneginf,
    np.array([np.inf, -np.inf, np.nan, 1]),
    grad=(),
)
zeros = np.array([0.0, 0.0, 1.5])
for op, reference in [("xlogy", sp.xlogy), ("xlog1py", sp.xlog1py)]:
    case(
        op,
        lambda hf, a, b, op=op: getattr(hf, op)(a, b),
        reference,
        zeros,
        np.array([2.0, 0.7, 3.0]),
        label=" zeros",
    )
    case(
        op,
        lambda hf, a, b, op=op: getattr(hf, op)(a, b),
        reference,
        np.array([0.0, 0.0, 0.0, np.nan, 2.0]),
        np.array([-1.0, np.nan, np.inf, 1.0, np.inf]),
        grad=(),
        label=" special",
    )
infinite = np.array([np.inf, -np.inf, np.inf, np.nan])
for op in ("logaddexp", "logaddexp2"):
    case(
        op,
        lambda hf, a, b, op=op: getattr(hf, op)(a, b),
        getattr(np, op),
        infinite,
        np.array([np.inf, -np.inf, -np.inf, 1.0]),
        grad=(),
        label=" infinite",
    )
case(
    "var",
    lambda hf, a: hf.var(a, 1),
    lambda a: a.var(1, ddof=1),
    np.array([[1.0, np.inf, 2.0], [3.0, 1.0, 2.5]]),
    grad=(),
    label=" infinite",
)
case(
    "masked_scatter",
    lambda hf, a, m: hf.masked_scatter(a, m, a * 2),
    lambda a, m: a * 2,
    (),
    np.array(True),
)
case(
    "nan_to_num",
    lambda hf, a: hf.nan_to_num(a),
    lambda a: np.nan_to_num(a, posinf=99.0).clip(max=99.0),
    np.array([np.nan, -1.5, 99.0]),
    grad=(),
)
case(
    "nan_to_num",
    lambda hf, a: hf.nan_to_num(a, 1.0, 2.0, 3.0),
    lambda a: np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=3.0),
    np.array([np.inf, -np.inf, np.nan, -1.5]),
)
case("isinf", unary("isinf"), np.isinf, np.array([np.inf, -np.inf, np.nan, 1]), grad=())

for op, reference, a, b in [
    ("atan2", np.arctan2, nonzero, (3, 4)),
    ("arctan2", np.arctan2, nonzero, (4,)),
    ("hypot", np.hypot, nonzero, nonzero[:1]),
    ("fmod", np.fmod, away_from([-2, -1, 0, 1, 2], (3, 4)), np.full((3, 4), 0.73)),
    ("fmax", np.fmax, distinct((3, 4)), distinct((3, 4), 6) + 0.05),
    ("fmin", np.fmin, distinct((3, 4)), distinct((3, 4), 6) + 0.05),
    ("logaddexp", np.logaddexp, (3, 4), (4,)),
    ("logaddexp2", np.logaddexp2, (3, 4), (4,)),
    ("xlogy", sp.xlogy, (3, 4), positive),
    ("xlog1py", sp.xlog1py, (3, 4), positive),
    ("ldexp", lambda a, b: a * 2**b, (3, 4), (4,)),
    ("float_power", np.float_power, positive, (4,)),
]:
    case(op, lambda hf, a, b, op=op: getattr(hf, op)(a, b), reference, a, b)
case(
    "copysign",
    lambda hf, a, b: hf.copysign(a, b),
    np.copysign,
    nonzero,
    (4,),
    grad=(0,),
)
case(
    "nextafter", lambda hf, a, b: hf.nextafter(a, b), np.nextafter, (3,), (3,), grad=()
)
case("zeta", lambda hf, a: hf.zeta(3.0, a), lambda a: sp.zeta(3.0, a), positive)
case("zeta", lambda hf, a, b: hf.zeta(a, b), sp.zeta, above_one, positive, grad=(1,))
for op, reference in [("igamma", sp.gammainc), ("igammac", sp.gammaincc)]:
    case(
        op,
        lambda hf, a, b, op=op: getattr(hf, op)(a, b),
        reference,
        np.array([[0.3], [1.0], [2.5], [14.0]]),
        np.array([0.4, 2.0, 4.0, 13.0]),
        grad=(1,),
    )
case(
    "fmax",
    lambda hf, a: hf.fmax(a, a.flip(0)),
    lambda a: np.fmax(a, a[::-1]),
    np.array([1, np.nan, 3, np.nan, np.nan]),
    grad=(),
    label=" NaN",
)
case(
    "heaviside",
    lambda hf, a, b: hf.heaviside(a, b),
    np.heaviside,
    np.array([-1.0, 0, 2]),
    np.array([0.5]),
    grad=(),
)
for op, reference in [
    ("gcd", np.gcd),
    ("lcm", np.lcm),
    ("bitwise_left_shift", np.left_shift),
    ("bitwise_right_shift", np.right_shift),
    ("fmod", np.fmod),
]:
    amounts = np.abs(ints((3, 4), seed=8)) + 1
    case(
        op,
        lambda hf, a, b, op=op: getattr(hf, op)(a, b),
        reference,
        ints((3, 4), -40, 40),
        amounts,
        grad=(),
        label=" int",
    )


# ---- orthogonal polynomials

for op, reference in [
    ("chebyshev_polynomial_t", sp.eval_chebyt),
    ("chebyshev_polynomial_u", sp.eval_chebyu),
    ("hermite_polynomial_h", sp.eval_hermite),
    ("hermite_polynomial_he", sp.eval_hermitenorm),
    ("laguerre_polynomial_l", sp.eval_laguerre),
    ("legendre_polynomial_p", sp.eval_legendre),
    ("shifted_chebyshev_polynomial_t", sp.eval_sh_chebyt),
    ("shifted_chebyshev_polynomial_u", sp.eval_sh_chebyu),
]:
    for x in (inside, distinct((3, 4))):
        case(
            f"special.{op}",
            lambda hf, a, n, op=op: getattr(hf.special, op)(a, n),
            lambda a, n, f=reference: f(n, a),
            x,
            ints((3, 1), 0, 9),
            grad=(),
        )


def third_kind(x, n):
    """Chebyshev's third: cos((n + 1/2) t) / cos(t / 2), x = cos(t)."""
    t = np.arccos(x)
    return np.cos((n + 0.5) * t) / np.cos(t / 2)


def fourth_kind(x, n):
    """Chebyshev's fourth: sin((n + 1/2) t) / sin(t / 2)."""
    t = np.arccos(x)
    return np.sin((n + 0.5) * t) / np.sin(t / 2)


for kind, reference in [("v", third_kind), ("w", fourth_kind)]:
    case(
        f"special.chebyshev_polynomial_{kind}",
        lambda hf, a, n, k=kind: getattr(hf.special, f"chebyshev_polynomial_{k}")(a, n),
        reference,
        inside,
        ints((3, 1), 0, 9),
        grad=(),
    )
    case(
        f"special.shifted_chebyshev_polynomial_{kind}",
        lambda hf, a, n, k=kind: getattr(
            hf.special, f"shifted_chebyshev_polynomial_{k}"
        )(a, n),
        lambda a, n, f=reference: f(2 * a - 1, n),
        away_from([], (3, 4), 0.05, 0.95),
        ints((3, 1), 0, 9),
        grad=(),
    )
case(
    "special.legendre_polynomial_p",
    lambda hf, a: hf.special.legendre_polynomial_p(a, -1),
    np.zeros_like,
    (3, 4),
    grad=(),
)
for x in (np.linspace(-12, 12, 97), np.array([-2.09, 2.09, 0.0, np.nan])):
    case(
        "special.airy_ai",
        lambda hf, a: hf.special.airy_ai(a),
        lambda a: sp.airy(a)[0],
        x,
        grad=(),
    )
