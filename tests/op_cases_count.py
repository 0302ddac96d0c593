# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of counting: histograms, occurrences, different elements."""

import numpy as np
from op_cases import case, ints

rng = np.random.default_rng(4)
x = rng.normal(size=(5, 40))
words = ints((4, 12), 0, 5)
rows = ints((20, 3), 0, 2)


def counts(a, bins, low, high):
    return np.histogram(a, bins, (low, high))[0].astype(np.float64)


for low, high in [(-1, 1), (0.25, 3)]:
    case(
        "histc",
        lambda hf, a, r=(low, high): hf.histc(a, 7, *r),
        lambda a, r=(low, high): counts(a, 7, *r),
        x,
        grad=(),
        label=f" {low} {high}",
    )
case(
    "histc",
    lambda hf, a: a.t()[::2].histc(5),
    lambda a: counts(a.T[::2], 5, a.T[::2].min(), a.T[::2].max()),
    x,
    grad=(),
    label=" strided",
)
case("histc", lambda hf, a: a.histc(3), lambda a: np.zeros(3), (0,), grad=())
case(
    "histc",
    lambda hf, a: a.histc(4, -1, 1),
    lambda a: counts(a, 4, -1, 1),
    np.array([-1.0, -0.5, 0.5, 1.0, 1.5, np.nan, np.inf]),
    grad=(),
    label=" edges",
)
edges = np.array([-2.0, -0.5, 0.0, 0.1, 1.7])
weights = rng.uniform(size=(5, 40))
for density in (False, True):
    case(
        "histogram",
        lambda hf, a, e, w, d=density: hf.histogram(a, e, weight=w, density=d).hist,
        lambda a, e, w, d=density: np.histogram(a, e, weights=w, density=d)[0],
        x,
        edges,
        weights,
        grad=(),
        label=f" density={density}",
    )
    case(
        "histogram",
        lambda hf, a, d=density: hf.histogram(a, 6, range=(-1.5, 1.0), density=d)[0],
        lambda a, d=density: np.histogram(a, 6, (-1.5, 1.0), density=d)[0] * 1.0,
        x,
        grad=(),
        label=f" density={density}",
    )
case(
    "histogram",
    lambda hf, a: hf.histogram(a, 5).bin_edges,
    lambda a: np.histogram_bin_edges(a, 5),
    x,
    grad=(),
    label=" edges",
)

flat = words.reshape(-1)
case("bincount", lambda hf, a: hf.bincount(a), np.bincount, flat, grad=())
case(
    "bincount",
    lambda hf, a: a[::3].bincount(minlength=9),
    lambda a: np.bincount(a[::3], minlength=9),
    flat,
    grad=(),
    label=" strided",
)
case(
    "bincount",
    lambda hf, a, w: a.bincount(w),
    lambda a, w: np.bincount(a, w),
    flat,
    rng.uniform(size=48),
    grad=(),
    label=" weights",
)
for narrow in (np.uint8, np.int8, np.int16):
    case(
        "bincount",
        lambda hf, a: a.bincount(),
        np.bincount,
        flat.astype(narrow),
        grad=(),
        label=f" {narrow.__name__}",
    )
case("bincount", lambda hf, a: a.bincount(), np.bincount, flat[:0], grad=())
case("bincount", lambda hf, a: a.bincount(), np.bincount, ints(200000, 0, 9), grad=())
case(
    "lexsort",
    lambda hf, a: hf._C.ops.lexsort(a),
    lambda a: np.lexsort(a.T[::-1]),
    rows,
    grad=(),
)


def unique_reference(part, axis=None):
    def run(a):
        results = np.unique(a, return_inverse=True, return_counts=True, axis=axis)
        result = results[part]
        if part == 1 and axis is None:
            result = result.reshape(a.shape)
        return result.reshape(-1) if part == 1 and axis is not None else result

    return run


for part, name in enumerate(("values", "inverse", "counts")):
    for data in (words, words[:0], flat[:1], words > 2, words * 1.5):
        case(
            "unique",
            lambda hf, a, p=part: hf.unique(a, True, True, True)[p],
            unique_reference(part),
            data,
            grad=(),
            label=f" {name}",
        )
    for dim in (0, 1):
        case(
            "unique",
            lambda hf, a, p=part, d=dim: a.unique(
                return_inverse=True, return_counts=True, dim=d
            )[p],
            unique_reference(part, dim),
            rows if dim == 0 else rows.T.copy(),
            grad=(),
            label=f" {name} dim={dim}",
        )
case("unique", lambda hf, a: a.unique(), np.unique, words, grad=(), label=" alone")
# Counted in a table, by one thread and by several; too far apart for one; narrow.
for data in (
    ints((100000,), -3, 40),
    ints((5000,), -(2**62), 2**62),
    ints((3000,), 0, 100).astype(np.int16),
    ints((3000,), 0, 100).astype(np.uint8),
    ints((300,), 0, 9).astype(np.float16),
):
    for part in range(3):
        case(
            "unique",
            lambda hf, a, p=part: hf.unique(a, True, True, True)[p],
            unique_reference(part),
            data,
            grad=(),
            label=f" {data.dtype} {part}",
        )
case(
    "unique",
    lambda hf, a: a.unique(return_counts=True)[1],
    lambda a: np.unique(a, return_counts=True)[1],
    words,
    grad=(),
    label=" two",
)


def runs(part):
    def run(a):
        a = a.ravel()
        starts = np.concatenate([[True], a[1:] != a[:-1]])
        at = np.nonzero(starts)[0]
        return (a[at], starts.cumsum() - 1, np.diff(np.append(at, len(a))))[part]

    return run


for part in range(3):
    case(
        "unique_consecutive",
        lambda hf, a, p=part: hf.unique_consecutive(a, True, True)[p],
        runs(part),
        ints((30,), 0, 2),
        grad=(),
        label=f" {part}",
    )
case(
    "unique_consecutive",
    lambda hf, a: hf.unique_consecutive(a, dim=0),
    lambda a: a[np.concatenate([[True], (a[1:] != a[:-1]).any(1)])],
    rows,
    grad=(),
    label=" dim",
)
