# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Op cases of what PyTorch has for its own use: operators that other functions are
made of; op_cases.py says what a row is.
"""

import numpy as np
from op_cases import case

rng = np.random.default_rng(43)


def first_rows(a, size, fill=-1):
    rows = np.stack(np.nonzero(a), -1)[:size] if a.ndim else np.zeros((size, 0))
    return np.pad(rows, [(0, size - len(rows)), (0, 0)], constant_values=fill)


sparse = np.where(rng.uniform(0, 1, (3, 4)) < 0.5, rng.uniform(1, 2, (3, 4)), 0)
for shape in [(3, 4), (12,), (2, 3, 2)]:
    for size in (0, 3, 20):
        case(
            "nonzero_static",
            lambda hf, a, s=size: hf.nonzero_static(a, size=s),
            lambda a, s=size: first_rows(a, s),
            sparse.reshape(shape),
            grad=(),
            label=f" size={size}",
        )
for empty in [(), (0, 3)]:
    case(
        "nonzero_static",
        lambda hf, a: hf.nonzero_static(a, size=2, fill_value=7),
        lambda a: np.full((2, a.ndim), 7),
        empty,
        grad=(),
    )


def joined(dim, chunks, *arrays):
    parts = []
    for a in arrays:
        length = -(-a.shape[dim] // chunks) * chunks
        pads = [(0, length - n if d == dim else 0) for d, n in enumerate(a.shape)]
        parts.append(np.pad(a, pads).reshape(*a.shape[:dim], chunks, -1))
    return np.concatenate(parts, -1)


for dim, shapes in [(0, [(3, 2), (1, 4), (4,)]), (1, [(2, 3, 2), (2, 5)])]:
    case(
        "_chunk_cat",
        lambda hf, *tensors, d=dim: hf._chunk_cat(list(tensors), d, 2),
        lambda *arrays, d=dim: joined(d, 2, *arrays),
        *shapes,
        label=f" dim={dim}",
    )

inside = np.array([[True, False, True], [True, True, False]])
first = np.array([[1], [-2]])
second = np.array([[0, 9, 1]])
case(
    "_unsafe_masked_index",
    lambda hf, a, m, i, j: hf._unsafe_masked_index(a, m, [i, j], -4.0),
    lambda a, m, i, j: np.where(m, a[i, j.clip(0, 2)], -4.0),
    (2, 3),
    inside,
    first,
    second,
)


def added(a, m, i, j, values):
    a = a.copy()
    np.add.at(a, (i, j.clip(0, 2)), np.where(m, values, 0))
    return a


case(
    "_unsafe_masked_index_put_accumulate",
    lambda hf, a, m, i, j, v: hf._unsafe_masked_index_put_accumulate(a, m, [i, j], v),
    added,
    (2, 3),
    inside,
    first,
    second,
    (2, 3),
)


def normalised(a, weight, bias):
    mean, var = a.mean((0, 2)), a.var((0, 2))
    rstd = 1 / np.sqrt(var + 1e-3)
    scaled = (a - mean[:, None]) * (rstd * weight)[:, None] + bias[:, None]
    return scaled, mean, rstd


for part in range(3):
    case(
        "_native_batch_norm_legit",
        lambda hf, a, w, b, p=part: hf._native_batch_norm_legit(
            a, w, b, True, 0.1, 1e-3
        )[p],
        lambda a, w, b, p=part: normalised(a, w, b)[p],
        (3, 2, 4),
        (2,),
        (2,),
        grad=None if part == 0 else (),
        label=f" {part}",
    )
    case(
        "_batch_norm_with_update",
        lambda hf, a, w, b, p=part: hf._batch_norm_with_update(
            a, w, b, hf.zeros_like(w), hf.ones_like(w), 0.1, 1e-3
        )[p],
        lambda a, w, b, p=part: normalised(a, w, b)[p],
        (3, 2, 4),
        (2,),
        (2,),
        grad=None if part == 0 else (),
        label=f" {part}",
    )
