# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of scans, differences and integrals."""

import numpy as np
from op_cases import case, distinct, ints

zeros = np.array([[1.0, 0.0, 2.0, 3.0], [0.0, 4.0, 0.0, 5.0]])
special = np.array([1.0, np.nan, 3.0, np.inf, -np.inf, 3.0])

for dim in (0, 1, -1):
    case(
        "cumprod",
        lambda hf, a, d=dim: hf.cumprod(a, d),
        lambda a, d=dim: np.cumprod(a, d),
        (2, 3, 4),
        label=f" dim={dim}",
    )
    case(
        "logcumsumexp",
        lambda hf, a, d=dim: hf.logcumsumexp(a, d),
        lambda a, d=dim: np.log(np.cumsum(np.exp(a), d)),
        (2, 3, 4),
        label=f" dim={dim}",
    )
case("cumprod", lambda hf, a: a.cumprod(1), lambda a: a.cumprod(1), zeros)
case("cumprod", lambda hf, a: a.cumprod(0), np.cumprod, ints((5,)), grad=())
case("cumprod", lambda hf, a: a.cumprod(0), np.cumprod, (0,), grad=())
case(
    "cumprod",
    lambda hf, a: a.t()[::2].cumprod(1),
    lambda a: a.T[::2].cumprod(1),
    (3, 5),
    label=" strided",
)
case(
    "logcumsumexp",
    lambda hf, a: a.logcumsumexp(0),
    lambda a: np.array([-np.inf, -np.inf, 2, 1000, 1000 + np.log(2), np.inf]),
    np.array([-np.inf, -np.inf, 2, 1000, 1000, np.inf]),
    grad=(),
    label=" infinite",
)


def running(better):
    def run(a, dim, index):
        values, indices = a.copy(), np.zeros(a.shape, np.int64)
        v, i = np.moveaxis(values, dim, 0), np.moveaxis(indices, dim, 0)
        for k in range(1, len(v)):
            take = np.isnan(v[k]) | (better(v[k], v[k - 1]) & ~np.isnan(v[k - 1]))
            v[k] = np.where(take, v[k], v[k - 1])
            i[k] = np.where(take, k, i[k - 1])
        return indices if index else values

    return run


for name, better in [("cummax", np.greater_equal), ("cummin", np.less_equal)]:
    reference = running(better)
    for dim in (0, -1):
        for part in (0, 1):
            case(
                name,
                lambda hf, a, n=name, d=dim, p=part: getattr(hf, n)(a, d)[p],
                lambda a, f=reference, d=dim, p=part: f(a, d, p),
                distinct((3, 4)),
                grad=() if part else None,
                label=f" dim={dim}",
            )
            case(
                name,
                lambda hf, a, n=name, d=dim, p=part: getattr(hf, n)(a, d)[p],
                lambda a, f=reference, d=dim, p=part: f(a, d, p),
                special,
                grad=(),
                label=f" special {part}",
            )


def linear_reference(reverse):
    def run(x, a):
        y = np.zeros_like(x)
        n = x.shape[1]
        order = range(n - 1, -1, -1) if reverse else range(n)
        last = np.zeros_like(x[:, 0])
        for i in order:
            last = x[:, i] + a[:, i] * last
            y[:, i] = last
        return y

    return run


for reverse in (False, True):
    case(
        "linear_scan",
        lambda hf, x, a, r=reverse: hf._C.ops.linear_scan(x, a, 1, r),
        linear_reference(reverse),
        (2, 4, 3),
        (2, 4, 3),
        label=f" reverse={reverse}",
    )

for n in (0, 1, 2, 9):
    case(
        "diff",
        lambda hf, a, n=n: hf.diff(a, n),
        lambda a, n=n: np.diff(a, n),
        (2, 4),
        label=f" n={n}",
        grad=() if n == 9 else None,
    )
case("diff", lambda hf, a: a.diff(dim=0), lambda a: np.diff(a, axis=0), (3, 2))
case("diff", lambda hf, a: a.diff(), np.diff, ints((5,)) > 0, grad=())
case(
    "diff",
    lambda hf, a, b: hf.diff(a, prepend=b, append=b),
    lambda a, b: np.diff(a, prepend=b, append=b),
    (2, 3),
    (2, 1),
)
for edge in (1, 2):
    case(
        "gradient",
        lambda hf, a, e=edge: hf.gradient(a, edge_order=e)[1],
        lambda a, e=edge: np.gradient(a, edge_order=e)[1],
        (4, 5),
        label=f" edge={edge}",
    )
    case(
        "gradient",
        lambda hf, a, x, e=edge: hf.gradient(a, spacing=(x,), dim=0, edge_order=e)[0],
        lambda a, x, e=edge: np.gradient(a, x, axis=0, edge_order=e),
        (4, 3),
        np.array([0.0, 0.5, 2.0, 2.5]),
        grad=(0,),
        label=f" edge={edge}",
    )
case(
    "gradient",
    lambda hf, a: hf.gradient(a, spacing=[0.5, 2.0])[0],
    lambda a: np.gradient(a, 0.5, 2.0)[0],
    (3, 3),
    label=" spacing",
)
steps = np.array([0.0, 0.5, 2.0, 2.5])
try:
    integral = np.trapezoid
except AttributeError:
    integral = np.trapz
case("trapezoid", lambda hf, y: hf.trapezoid(y), integral, (3, 4))
case(
    "trapz",
    lambda hf, y: hf.trapz(y, dx=2.0, dim=0),
    lambda y: integral(y, dx=2.0, axis=0),
    (3, 4),
)
case("trapezoid", lambda hf, y, x: hf.trapezoid(y, x), integral, (3, 4), steps)


def cumulative(y, x):
    panels = (y[..., 1:] + y[..., :-1]) / 2 * np.diff(x)
    return panels.cumsum(-1)


case(
    "cumulative_trapezoid",
    lambda hf, y, x: hf.cumulative_trapezoid(y, x),
    cumulative,
    (3, 4),
    steps,
)
