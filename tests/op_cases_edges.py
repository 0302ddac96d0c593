# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Op cases at the edges of what the arguments may be: indices below 0, sizes that
broadcast, values that repeat; op_cases.py says what a row is.
"""

import numpy as np
import scipy.special as sp
from op_cases import case

rng = np.random.default_rng(41)


def turned(a, i):
    return np.take_along_axis(a, i, 1)


case(
    "take_along_dim",
    lambda hf, a, i: hf.take_along_dim(a, i, 1),
    turned,
    (2, 3),
    np.array([[-1, 0, -3, 2]]),
    label=" below 0",
)


def filled(a, i, value):
    a = a.copy()
    a[i] = value
    return a


# A row that is named twice has the value's gradient once.
case(
    "index_fill",
    lambda hf, a, i, v: hf.index_fill(a, 0, i, v),
    filled,
    (4, 2),
    np.array([1, 3, 1]),
    (),
)
case(
    "index_fill",
    lambda hf, a, i, v: hf.clone(a).index_fill_(0, i, v),
    filled,
    (4, 2),
    np.array([-1, 0]),
    (),
    label=" in place",
)


def cosine(a, b):
    a, b = np.broadcast_arrays(a, b)
    norms = np.linalg.norm(a, axis=-2) * np.linalg.norm(b, axis=-2)
    return (a * b).sum(-2) / norms


case(
    "nn.functional.cosine_similarity",
    lambda hf, a, b: hf.nn.functional.cosine_similarity(a, b, -2),
    cosine,
    (1, 2, 3),
    (2, 1, 3),
)
for first, second in [((2, 1, 4), (4, 2, 5)), ((2, 3, 4), (1, 2, 5))]:
    case(
        "tensordot",
        lambda hf, a, b: hf.tensordot(a, b, ((2, 0), (0, 1))),
        lambda a, b: np.einsum("ijk,kil->jl", *np_pairs(a, b)),
        first,
        second,
        label=" broadcast",
    )


def np_pairs(a, b):
    size = max(a.shape[2], b.shape[0])
    return (
        np.broadcast_to(a, (*a.shape[:2], size)),
        np.broadcast_to(b, (size, *b.shape[1:])),
    )


def crossed_logit(a):
    limited = np.where(a < 0.6, 0.6, np.where(a > 0.4, 0.4, a))
    return sp.logit(limited)


# eps above a half puts the lower limit above the upper one.
case(
    "logit",
    lambda hf, a: hf.logit(a, 0.6),
    crossed_logit,
    rng.uniform(0, 1, (3, 4)),
    label=" eps=0.6",
)
case(
    "nn.functional.prelu",
    lambda hf, a, w: hf.nn.functional.prelu(a, w),
    lambda a, w: np.where(a > 0, a, a * w[0]),
    (),
    (1,),
)


def replicated(a, before, after):
    place = np.arange(-before, a.shape[-1] + after).clip(0, a.shape[-1] - 1)
    return a[..., place]


for amounts in [(-4, 5), (2, -5), (-1, -2), (6, -2)]:
    case(
        "nn.functional.pad",
        lambda hf, a, p=amounts: hf.nn.functional.pad(a, p, "replicate"),
        lambda a, p=amounts: replicated(a, *p),
        (2, 3, 4),
        label=f" replicate {amounts}",
    )


def masked_variance(a, mask, axis, correction):
    mask = np.broadcast_to(mask, a.shape)
    count = mask.sum(axis)
    mean = np.where(mask, a, 0).sum(axis, keepdims=True) / mask.sum(axis, keepdims=True)
    return np.where(mask, (a - mean) ** 2, 0).sum(axis) / (count - correction)


mask = np.array([[True, True, False, True], [False, True, True, True]])
for options, correction in [({}, 1), ({"correction": 0.5}, 0.5), ({"unbiased": 0}, 0)]:
    case(
        "masked.var",
        lambda hf, a, m, o=options: hf.masked.var(a, 1, mask=m, **o),
        lambda a, m, c=correction: masked_variance(a, m, 1, c),
        (2, 4),
        mask,
        label=f" {options}",
    )
    case(
        "masked.std",
        lambda hf, a, m, o=options: hf.masked.std(a, 1, mask=m, **o),
        lambda a, m, c=correction: np.sqrt(masked_variance(a, m, 1, c)),
        (2, 4),
        mask,
        label=f" {options}",
    )


def reflections(a, tau):
    """The product of the reflections, one by one."""
    q = np.eye(len(a))
    for i, t in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1.0], a[i + 1 :, i]])
        q = q @ (np.eye(len(a)) - t * np.outer(v, v))
    return q


# The gradient is there for a tau of 0, too: geqrf()'s last one of a square matrix.
case(
    "ormqr",
    lambda hf, a, tau, c: hf.ormqr(a, tau, c),
    lambda a, tau, c: reflections(a, tau) @ c,
    (3, 3),
    np.array([1.2, 0.0, 0.0]),
    (3, 2),
    label=" idle",
)
case(
    "linalg.householder_product",
    lambda hf, a, tau: hf.linalg.householder_product(a, tau),
    lambda a, tau: reflections(a, tau)[:, : a.shape[1]],
    (4, 3),
    np.array([0.0, 1.2, 0.0]),
    label=" idle",
)
case(
    "linalg.lstsq",
    lambda hf, a, b: hf.linalg.lstsq(a, b, driver="gels")[1],
    lambda a, b: np.linalg.lstsq(a, b, None)[1],
    (5, 3),
    (5, 2),
    label=" residuals",
)
for part in range(3):
    case(
        "native_group_norm",
        lambda hf, a, p=part: hf.native_group_norm(a, None, None, 2, 4, 3, 2, 1e-3)[p],
        lambda a, p=part: group_norm(a)[p],
        (2, 4, 3),
        label=f" {('output', 'mean', 'rstd')[part]}",
    )


def group_norm(a):
    rows = a.reshape(2, 2, 6)
    mean, rstd = rows.mean(-1), 1 / np.sqrt(rows.var(-1) + 1e-3)
    return ((rows - mean[..., None]) * rstd[..., None]).reshape(a.shape), mean, rstd
