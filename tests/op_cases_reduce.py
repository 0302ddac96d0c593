# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of reductions."""

import numpy as np
from op_cases import away_from, case, distinct, ints

mask = ints((3, 4)) > 0
nonzero = away_from([0], (2, 3, 4))
with_zeros = np.array([[1.0, 0.0, 2.0, 3.0], [0.0, 4.0, 0.0, 5.0]])
with_nan = np.array([[1.0, np.nan, 3.0], [np.nan, -2.0, 0.5]])


def pick(dim):
    """Arguments of the two sides for a dim that may be None."""
    return {} if dim is None else {"dim": dim}


for dim in (None, 0, -1):
    case(
        "prod",
        lambda hf, a, d=dim: hf.prod(a, **pick(d)),
        lambda a, d=dim: np.prod(a, axis=d),
        (2, 3, 4),
        label=f" dim={dim}",
    )
    case(
        "prod",
        lambda hf, a, d=dim: hf.prod(a, **pick(d)),
        lambda a, d=dim: np.prod(a, axis=d),
        with_zeros,
        label=f" zeros dim={dim}",
    )
case(
    "prod",
    lambda hf, a: a.permute(2, 0, 1).prod(1, keepdim=True),
    lambda a: a.transpose(2, 0, 1).prod(1, keepdims=True),
    (2, 3, 4),
    label=" strided",
)
case("prod", lambda hf, a: a.prod(), np.prod, (0,), grad=(), label=" empty")
case("prod", lambda hf, a: a.prod(0), lambda a: a.prod(0), (0, 3), grad=())
case("prod", lambda hf, a: a.prod(1), lambda a: a.prod(1), ints((3, 4)), grad=())
case("prod", lambda hf, a: a.prod(), np.prod, (1,))

for dim in (None, 1, (0, 2), (0, 1, 2)):
    for correction in (0, 1):
        for name, reference in [("var", np.var), ("std", np.std)]:
            case(
                name,
                lambda hf, a, n=name, d=dim, c=correction: getattr(hf, n)(
                    a, d, correction=c
                ),
                lambda a, f=reference, d=dim, c=correction: f(a, axis=d, ddof=c),
                (2, 3, 4),
                label=f" dim={dim} correction={correction}",
            )
case(
    "var",
    lambda hf, a: a.permute(2, 0, 1).var(0, keepdim=True),
    lambda a: a.transpose(2, 0, 1).var(0, ddof=1, keepdims=True),
    (2, 3, 4),
    label=" strided",
)
case("var", lambda hf, a: a.var(), lambda a: a.var(ddof=1), np.arange(5.0) + 1e5)
case(
    "var",
    lambda hf, a: hf.var(a, 1),
    lambda a: np.var(a, axis=1, ddof=1),
    (3, 3000),
    grad=(),
)
case(
    "var",
    lambda hf, a: hf.var(a, 0),
    lambda a: np.var(a, axis=0, ddof=1),
    (3000, 70),
    grad=(),
)
case("var", lambda hf, a: a.var(0), lambda a: a.var(0, ddof=1), (0, 2), grad=())
case("var", lambda hf, a: a.var(), lambda a: np.array(np.nan), (1,), grad=())
case(
    "var_mean",
    lambda hf, a: hf.var_mean(a, 1)[0] + 2 * hf.var_mean(a, 1)[1],
    lambda a: a.var(1, ddof=1) + 2 * a.mean(1),
    (2, 3, 4),
)
case(
    "std_mean",
    lambda hf, a: sum(hf.std_mean(a, (0, 1), False)),
    lambda a: a.std((0, 1)) + a.mean((0, 1)),
    (2, 3, 4),
)

orders = [0, 1, 2, np.inf, -np.inf, 3, 2.5]
for p in orders:
    for dim in (None, 1, (0, 2)):
        case(
            "vector_norm" if p in (0, 1, 2, np.inf, -np.inf) else "norm",
            lambda hf, a, p=p, d=dim: hf.norm(a, p, d),
            lambda a, p=p, d=dim: (
                np.linalg.norm(a.ravel(), p)
                if d is None
                else np.linalg.norm(
                    np.moveaxis(a, d, -1)
                    if isinstance(d, int)
                    else np.moveaxis(a, d, (-2, -1)).reshape(3, -1),
                    p,
                    axis=-1,
                )
            ),
            nonzero,
            label=f" p={p} dim={dim}",
        )
case("norm", lambda hf, a: a.norm(), np.linalg.norm, (0,), grad=())
case(
    "norm",
    lambda hf, a: hf.norm(a.t()[::2], dim=0),
    lambda a: np.linalg.norm(a.T[::2], axis=0),
    (3, 5),
    label=" strided",
)

for name, reference, dims in [
    ("nansum", np.nansum, (None, 0, 1)),
    ("nanmean", np.nanmean, (None, 1)),
]:
    for dim in dims:
        case(
            name,
            lambda hf, a, n=name, d=dim: getattr(hf, n)(a, d),
            lambda a, f=reference, d=dim: f(a, axis=d),
            with_nan,
            grad=(),
            label=f" dim={dim}",
        )
        case(
            name,
            lambda hf, a, n=name, d=dim: getattr(hf, n)(a, d),
            lambda a, f=reference, d=dim: f(a, axis=d),
            (2, 3),
            label=f" dim={dim}",
        )
for dim in (None, 1, (0, 1)):
    case(
        "count_nonzero",
        lambda hf, a, d=dim: hf.count_nonzero(a, d),
        lambda a, d=dim: np.array(np.count_nonzero(a, axis=d)),
        ints((3, 4), -1, 2),
        grad=(),
    )
for dim in (0, -1, (0, 2)):
    case(
        "logsumexp",
        lambda hf, a, d=dim: hf.logsumexp(a, d),
        lambda a, d=dim: np.log(np.exp(a).sum(d)),
        (2, 3, 4),
        label=f" dim={dim}",
    )
case(
    "logsumexp",
    lambda hf, a: hf.logsumexp(a, 0),
    lambda a: np.array([-np.inf, np.inf, 1000 + np.log(2)]),
    np.array([[-np.inf, np.inf, 1000], [-np.inf, 1, 1000]]),
    grad=(),
    label=" infinite",
)
case("logsumexp", lambda hf, a: a.logsumexp(1), lambda a: a[:, 0], (2, 1))

x = distinct((3, 4))
for name, reference, arg in [
    ("max", np.max, np.argmax),
    ("min", np.min, np.argmin),
]:
    case(name, lambda hf, a, n=name: getattr(hf, n)(a), reference, x)
    case(
        name,
        lambda hf, a, n=name: getattr(hf, n)(a, 1).values,
        lambda a, f=reference: f(a, axis=1),
        x,
        label=" dim",
    )
    case(
        name,
        lambda hf, a, n=name: getattr(hf, n)(a, 0, keepdim=True)[1],
        lambda a, f=arg: f(a, axis=0)[None],
        x,
        grad=(),
        label=" indices",
    )
case("max", lambda hf, a: hf.max(a, 1)[0], lambda a: a.max(1), x > 0.3, grad=())
case("aminmax", lambda hf, a: hf.aminmax(a, dim=1)[1], lambda a: a.max(1), x)
case("aminmax", lambda hf, a: hf.aminmax(a).min, np.min, x)
case(
    "dist",
    lambda hf, a, b: hf.dist(a, b),
    lambda a, b: np.linalg.norm(a - b),
    x,
    x.T.reshape(3, 4),
)


def cosine(a, b):
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(1) / norms


case(
    "nn.functional.cosine_similarity",
    lambda hf, a, b: hf.nn.functional.cosine_similarity(a, b),
    cosine,
    (3, 4),
    (3, 4),
)
for p in (1, 2, 3, np.inf):
    case(
        "nn.functional.pairwise_distance",
        lambda hf, a, b, p=p: hf.nn.functional.pairwise_distance(a, b, p),
        lambda a, b, p=p: np.linalg.norm(a - b + 1e-6, p, axis=-1),
        (3, 4),
        (3, 4),
        label=f" p={p}",
    )
    case(
        "nn.functional.normalize",
        lambda hf, a, p=p: hf.nn.functional.normalize(a, p, 0),
        lambda a, p=p: a / np.linalg.norm(a, p, axis=0),
        (3, 4),
        label=f" p={p}",
    )
case("frobenius_norm", lambda hf, a: hf.frobenius_norm(a), np.linalg.norm, (3, 4))


# ---- sums, extremes, truths

for op, reference in [("sum", np.sum), ("mean", np.mean)]:
    for dim in (None, 0, -1, (0, 2)):
        for keep in (False, True):
            case(
                op,
                lambda hf, a, op=op, d=dim, k=keep: (
                    getattr(hf, op)(a)
                    if d is None
                    else getattr(hf, op)(a, dim=d, keepdim=k)
                ),
                lambda a, f=reference, d=dim, k=keep: f(
                    a, axis=d, keepdims=k and d is not None
                ),
                (2, 3, 4),
                label=f" dim={dim} keepdim={keep}",
            )
case("sum", lambda hf, a: a.sum(0), lambda a: a.sum(0), ints((3, 4)), grad=())
case("sum", lambda hf, a: a.sum(), lambda a: a.sum(), mask, grad=())
for op, reference in [("amax", np.max), ("amin", np.min)]:
    for dim in (None, 1, (0, 2)):
        case(
            op,
            lambda hf, a, op=op, d=dim: (
                getattr(hf, op)(a) if d is None else getattr(hf, op)(a, d)
            ),
            lambda a, f=reference, d=dim: f(a, axis=d),
            distinct((2, 3, 4)),
            label=f" dim={dim}",
        )
for op, reference in [("argmax", np.argmax), ("argmin", np.argmin)]:
    for dim in (None, 0, -1):
        case(
            op,
            lambda hf, a, op=op, d=dim: getattr(hf, op)(a, dim=d),
            lambda a, f=reference, d=dim: f(a, axis=d),
            distinct((2, 3, 4)),
            grad=(),
            label=f" dim={dim}",
        )
for op, reference in [("all", np.all), ("any", np.any)]:
    for dim in (None, 1):
        case(
            op,
            lambda hf, a, op=op, d=dim: (
                getattr(hf, op)(a) if d is None else getattr(hf, op)(a, d)
            ),
            lambda a, f=reference, d=dim: f(a, axis=d),
            mask,
            label=f" dim={dim}",
            grad=(),
        )
for dim in (0, 1, -1):
    case(
        "cumsum",
        lambda hf, a, d=dim: hf.cumsum(a, d),
        lambda a, d=dim: np.cumsum(a, d),
        (2, 3, 4),
        label=f" dim={dim}",
    )


# ---- segments


def segments(a, lengths, f, empty):
    parts = np.split(a, np.cumsum(lengths)[:-1])
    return np.stack([f(p, 0) if len(p) else np.full(a.shape[1:], empty) for p in parts])


for reduce, f, empty in [
    ("sum", np.sum, 0.0),
    ("mean", np.mean, 7.0),
    ("max", np.max, 7.0),
    ("min", np.min, 7.0),
    ("prod", np.prod, 1.0),
]:
    lengths = np.array([2, 3, 1] if empty == 7.0 else [2, 0, 3, 1])
    case(
        "segment_reduce",
        lambda hf, a, n, r=reduce: hf.segment_reduce(a, r, lengths=n),
        lambda a, n, f=f, e=empty: segments(a, n, f, e),
        (6, 2),
        lengths,
        grad=(0,),
        label=f" {reduce}",
    )
case(
    "segment_reduce",
    lambda hf, a, n: hf.segment_reduce(a, "max", offsets=n, axis=1, initial=0.5),
    lambda a, n: np.stack(
        [np.maximum(segments(r, np.diff(m), np.max, 0.5), 0.5) for r, m in zip(a, n)]
    ),
    (2, 5),
    np.array([[0, 2, 5], [0, 5, 5]]),
    grad=(),
    label=" offsets",
)
