# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of lookups and of comparisons of vectors."""

import numpy as np
from op_cases import case, ints

index = ints((2, 3), 0, 5)
for dtype in (np.int64, np.int32):
    case(
        "nn.functional.embedding",
        lambda hf, w, i: hf.nn.functional.embedding(i, w),
        lambda w, i: w[i],
        (5, 4),
        index.astype(dtype),
        label=f" {dtype.__name__}",
    )
case(
    "nn.functional.embedding",
    lambda hf, w, i: hf.nn.functional.embedding(i, w),
    lambda w, i: w[i],
    (5, 4),
    ints((0,), 0, 5),
    label=" empty",
)


def clipped(w, i):
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    w = w * np.minimum(1, 1.0 / (norms + 1e-7) * (norms > 1) + (norms <= 1))
    return w[i]


case(
    "nn.functional.embedding",
    lambda hf, w, i: hf.nn.functional.embedding(i, w, max_norm=1.0),
    clipped,
    (5, 4),
    index,
    grad=(),
    label=" max_norm",
)


def bags(mode, starts, padding=None):
    def run(w, i, scale=None):
        out = np.zeros((len(starts), w.shape[1]))
        ends = list(starts[1:]) + [len(i)]
        for b, (start, end) in enumerate(zip(starts, ends)):
            chosen = [k for k in range(start, end) if i[k] != padding]
            rows = w[i[chosen]]
            if scale is not None:
                rows = rows * scale[chosen][:, None]
            if chosen:
                out[b] = getattr(rows, mode)(0)
        return out

    return run


flat = ints((7,), 0, 5)
for mode in ("sum", "mean", "max"):
    for starts, padding in [([0, 3, 3, 5], None), ([0, 2, 7], None), ([0, 4], 1)]:
        case(
            "nn.functional.embedding_bag",
            lambda hf, w, i, s=starts, m=mode, p=padding: (
                hf.nn.functional.embedding_bag(
                    i, w, hf.tensor(s), mode=m, padding_idx=p
                )
            ),
            bags(mode, starts, padding),
            (5, 4),
            flat,
            grad=(0,) if padding is None else (),
            label=f" {mode} {starts}",
        )
    case(
        "nn.functional.embedding_bag",
        lambda hf, w, i, m=mode: hf.nn.functional.embedding_bag(i, w, mode=m),
        lambda w, i, m=mode: getattr(w[i], m)(1),
        (5, 4),
        index,
        label=f" {mode} 2-D",
    )
case(
    "nn.functional.embedding_bag",
    lambda hf, w, i, s: hf.nn.functional.embedding_bag(
        i,
        w,
        hf.tensor([0, 3, 7]),
        mode="sum",
        per_sample_weights=s,
        include_last_offset=True,
    ),
    lambda w, i, s: bags("sum", [0, 3])(w, i, s),
    (5, 4),
    flat,
    (7,),
    label=" weights",
)
case(
    "nn.functional.one_hot",
    lambda hf, i: hf.nn.functional.one_hot(i, 6),
    lambda i: np.eye(6, dtype=np.int64)[i],
    index,
)
case(
    "nn.functional.one_hot",
    lambda hf, i: hf.nn.functional.one_hot(i),
    lambda i: np.eye(i.max() + 1, dtype=np.int64)[i],
    index,
    label=" inferred",
)


def norm(x, p, axis=-1):
    return (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)


for p in (1, 2, 3):
    for dim in (0, 1):
        case(
            "nn.functional.normalize",
            lambda hf, x, p=p, d=dim: hf.nn.functional.normalize(x, p, d),
            lambda x, p=p, d=dim: x / norm(x, p, d),
            (3, 4),
            label=f" p={p} dim={dim}",
        )
    case(
        "nn.functional.pairwise_distance",
        lambda hf, a, b, p=p: hf.nn.functional.pairwise_distance(a, b, p),
        lambda a, b, p=p: norm(a - b + 1e-6, p)[..., 0],
        (3, 4),
        (3, 4),
        label=f" p={p}",
    )
for dim in (0, 1):
    case(
        "nn.functional.cosine_similarity",
        lambda hf, a, b, d=dim: hf.nn.functional.cosine_similarity(a, b, d),
        lambda a, b, d=dim: (a / norm(a, 2, d) * b / norm(b, 2, d)).sum(d),
        (3, 4),
        (3, 4),
        label=f" dim={dim}",
    )
case(
    "nn.functional.bilinear",
    lambda hf, a, b, w, c: hf.nn.functional.bilinear(a, b, w, c),
    lambda a, b, w, c: np.einsum("...i,oij,...j->...o", a, w, b) + c,
    (2, 3, 4),
    (2, 3, 2),
    (5, 4, 2),
    (5,),
)
