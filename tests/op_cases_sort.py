# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of sorting, selecting and searching."""

import numpy as np
from op_cases import case, distinct, ints

special = np.array([[2.0, np.nan, -np.inf, 0.0, -0.0, np.inf, 2.0, np.nan]])
x = distinct((3, 4, 2))


def order(a, dim, descending):
    """Stable, NaN largest."""
    a = np.moveaxis(a, dim, -1)
    if descending:
        # The last of the reversed is the first of equals.
        back = np.argsort(a[..., ::-1], -1, kind="stable")[..., ::-1]
        result = a.shape[-1] - 1 - back
    else:
        result = np.argsort(a, -1, kind="stable")
    return np.moveaxis(result, -1, dim)


def ordered(a, dim, descending):
    return np.take_along_axis(a, order(a, dim, descending), dim)


def sort_case(data, dim, descending, grad=(), label=""):
    case(
        "sort",
        lambda hf, a: hf.sort(a, dim, descending).values,
        lambda a: ordered(a, dim, descending),
        data,
        grad=grad,
        label=f" {dim} {descending}{label}",
    )
    case(
        "argsort",
        lambda hf, a: a.argsort(dim, descending),
        lambda a: order(a, dim, descending),
        data,
        grad=(),
        label=f" {dim} {descending}{label}",
    )


rng = np.random.default_rng(8)
for descending in (False, True):
    for dim in (0, 1, -1):
        sort_case(x, dim, descending, grad=(0,))
    sort_case(special, 1, descending, label=" special")
    sort_case(ints((4, 30), -3, 3), 1, descending, label=" equals")
    sort_case(ints((4, 5), -3, 3) > 0, 0, descending)
    sort_case(ints((2, 3), -(10**12), 10**12), 1, descending)
    sort_case(np.int32([5, -7, 2**31 - 1, -(2**31), 0]), 0, descending)
    sort_case(np.uint8([5, 200, 0, 255, 5]), 0, descending)
    # The three ways to sort: comparing, narrow digits, wide digits.
    for n in (100, 3000, 40000):
        sort_case(distinct((n,)), 0, descending)
    sort_case(rng.integers(-50, 50, (2, 20000)), 1, descending)
sort_case(np.zeros((0, 3)), 0, False)
sort_case(np.zeros((2, 0)), 1, False)
sort_case(np.ones((2, 1)), 1, False, grad=(0,))
case("sort", lambda hf, a: a.sort()[0], lambda a: a, np.array(2.5))
case(
    "sort",
    lambda hf, a: a.permute(2, 0, 1)[:, ::2].sort(1)[0],
    lambda a: np.sort(a.transpose(2, 0, 1)[:, ::2], 1),
    x,
    label=" strided",
)
case("msort", lambda hf, a: hf.msort(a), lambda a: np.sort(a, 0), x)


def best(a, k, dim, largest):
    return np.take(ordered(a, dim, largest), range(k), dim)


for largest in (True, False):
    for k, dim in [(1, 0), (2, 1), (2, -1), (0, 1)]:
        case(
            "topk",
            lambda hf, a, k=k, d=dim, g=largest: hf.topk(a, k, d, g).values,
            lambda a, k=k, d=dim, g=largest: best(a, k, d, g),
            x,
            grad=None if k else (),
            label=f" {k} {dim} {largest}",
        )
    for data in (special, rng.normal(size=(2, 5000)), rng.integers(0, 9, (2, 5000))):
        for k in (3, 8):
            case(
                "topk",
                lambda hf, a, k=k, g=largest: hf.topk(a, k, 1, g)[0],
                lambda a, k=k, g=largest: best(a, k, 1, g),
                data,
                grad=(),
                label=f" {k} {largest}",
            )
    case(
        "topk",
        lambda hf, a, g=largest: hf.topk(a, 3000, largest=g)[0],
        lambda a, g=largest: best(a, 3000, 0, g),
        rng.normal(size=5000),
        grad=(),
        label=f" many {largest}",
    )
case(
    "topk",
    lambda hf, a: hf.topk(a, 100, sorted=False)[0].sort()[0],
    lambda a: np.sort(a)[-100:],
    rng.normal(size=5000),
    grad=(),
    label=" unsorted",
)
for k, dim, keep in [(1, 0, False), (3, 1, True), (2, -1, False)]:
    case(
        "kthvalue",
        lambda hf, a, k=k, d=dim, p=keep: hf.kthvalue(a, k, d, p).values,
        lambda a, k=k, d=dim, p=keep: np.sort(a, d).take(
            [k - 1] if p else k - 1, axis=d
        ),
        x,
        label=f" {k} {dim} {keep}",
    )
for n in (10, 4000, 9000):
    data = rng.normal(size=(2, n))
    for k in (1, n // 3, n):
        for part in (0, 1):
            case(
                "kthvalue",
                lambda hf, a, k=k, p=part: hf.kthvalue(a, k)[p],
                lambda a, k=k, p=part: (np.argsort if p else np.sort)(a, -1)[:, k - 1],
                data,
                grad=(),
                label=f" {k}",
            )
    case(
        "kthvalue",
        lambda hf, a: hf.kthvalue(a, 5)[1],
        lambda a: np.argsort(a, -1, kind="stable")[:, 4],
        rng.integers(0, 5, (2, n)),
        grad=(),
    )


def low_median(a, dim):
    return np.sort(a, dim).take((a.shape[dim] - 1) // 2, axis=dim)


case("median", lambda hf, a: hf.median(a), lambda a: np.sort(a.ravel())[11], x)
case("median", lambda hf, a: a.median(1)[0], lambda a: low_median(a, 1), x)
case("median", lambda hf, a: a.median(0, True)[0][0], lambda a: low_median(a, 0), x)
nans = np.array([[1.0, np.nan, 3.0, 2.0], [5.0, 4.0, 6.0, 7.0], [np.nan] * 4])
case(
    "median",
    lambda hf, a: a.median(1)[0],
    lambda a: np.array([np.nan, 5, np.nan]),
    nans,
    grad=(),
)
case(
    "median",
    lambda hf, a: a.median(1)[1],
    lambda a: np.array([1, 0, 0]),
    nans,
    grad=(),
    label=" indices",
)
case(
    "nanmedian",
    lambda hf, a: a.nanmedian(1)[0],
    lambda a: np.array([2, 5, np.nan]),
    nans,
    grad=(),
)
case("nanmedian", lambda hf, a: hf.nanmedian(a), lambda a: 4.0, nans, grad=())
case("median", lambda hf, a: a.median(), lambda a: np.nan, (0,), grad=())


def mode_reference(part):
    def run(a):
        results = []
        for row in a:
            values, counts = np.unique(row, return_counts=True)
            value = values[counts.argmax()]
            results.append((value, np.nonzero(row == value)[0][-1])[part])
        return np.array(results)

    return run


for part in (0, 1):
    case(
        "mode",
        lambda hf, a, p=part: a.mode(1)[p],
        mode_reference(part),
        ints((5, 12), 0, 5),
        grad=(),
        label=f" {part}",
    )
repeated = np.array([[1.0, 2.0, 2.0, 3.0], [4.0, 4.0, 4.0, 1.0]])
case(
    "mode",
    lambda hf, a: hf.mode(a, 0, True).values,
    lambda a: a.min(0)[None],
    repeated,
)
case("mode", lambda hf, a: a.mode()[0], lambda a: a, np.array(1.5))

edges = np.array([1.0, 2.0, 2.0, 5.0])
values = np.array([[0.0, 1.0, 2.0], [3.0, 5.0, 9.0]])
for right in (False, True):
    side = "right" if right else "left"
    case(
        "searchsorted",
        lambda hf, e, v, r=right: hf.searchsorted(e, v, right=r),
        lambda e, v, s=side: np.searchsorted(e, v, s),
        edges,
        values,
        grad=(),
        label=f" {side}",
    )
    case(
        "searchsorted",
        lambda hf, e, v, r=right: hf.searchsorted(e, v.t(), right=r),
        lambda e, v, s=side: np.stack(
            [np.searchsorted(a, b, s) for a, b in zip(e, v.T)]
        ),
        np.stack([edges, edges * 2, edges - 1]),
        values,
        grad=(),
        label=f" rows {side}",
    )
    case(
        "bucketize",
        lambda hf, e, v, r=right: hf.bucketize(v, e, out_int32=True, right=r),
        lambda e, v, s=side: np.searchsorted(e, v, s),
        edges,
        values,
        grad=(),
        label=f" {side}",
    )
case(
    "searchsorted",
    lambda hf, e: hf.searchsorted(e, 2, side="right"),
    lambda e: np.array(3),
    edges,
    grad=(),
    label=" number",
)
case(
    "searchsorted",
    lambda hf, e, v, i: hf.searchsorted(e, v, sorter=i),
    lambda e, v, i: np.searchsorted(e, v, sorter=i),
    np.array([5.0, 1.0, 3.0]),
    values,
    np.array([1, 2, 0]),
    grad=(),
)
case(
    "isin",
    lambda hf, a, b: hf.isin(a, b),
    np.isin,
    ints((3, 4)),
    np.array([1, 3, 9]),
    grad=(),
)
case(
    "isin",
    lambda hf, a, b: hf.isin(a, b, invert=True),
    lambda a, b: np.isin(a, b, invert=True),
    values,
    edges,
    grad=(),
)
case("isin", lambda hf, a: hf.isin(a, 2), lambda a: np.isin(a, 2), values, grad=())
