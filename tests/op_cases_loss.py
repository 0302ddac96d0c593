# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of losses."""

import math

import numpy as np
from op_cases import away_from, case, ints


def reduced(loss, reduction):
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


def log_softmax(x, axis=1):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def pointwise(name, reference, *inputs, label="", grad=None, **kwargs):
    """A case per reduction; `reference` gives the unreduced loss."""
    for reduction in ("none", "mean", "sum"):
        case(
            f"nn.functional.{name}",
            lambda hf, *x, r=reduction: getattr(hf.nn.functional, name)(
                *x, reduction=r, **kwargs
            ),
            lambda *x, r=reduction: reduced(reference(*x), r),
            *inputs,
            grad=grad,
            label=f" {reduction}{label}",
        )


rng = np.random.default_rng(23)
probabilities = rng.uniform(0.1, 0.9, (3, 4))
signs = np.where(rng.uniform(size=(3, 4)) > 0.5, 1.0, -1.0)
apart = away_from([-1.0, 0.0, 1.0, 0.5], (3, 4), -2, 2)
zeros = np.zeros((3, 4))


def smooth_l1(beta):
    def run(x, y):
        d = np.abs(x - y)
        return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)

    return run


pointwise("mse_loss", lambda x, y: (x - y) ** 2, (3, 4), (3, 4))
pointwise("l1_loss", lambda x, y: np.abs(x - y), apart, zeros)
pointwise("smooth_l1_loss", smooth_l1(1.0), apart, zeros)
pointwise("smooth_l1_loss", smooth_l1(0.5), apart, zeros, beta=0.5, label=" beta")
pointwise(
    "huber_loss", lambda x, y: 0.5 * smooth_l1(0.5)(x, y), apart, zeros, delta=0.5
)


def bce(p, t, w=1.0):
    return -w * (t * np.log(p) + (1 - t) * np.log(1 - p))


pointwise("binary_cross_entropy", bce, probabilities, probabilities.T.reshape(3, 4))
pointwise(
    "binary_cross_entropy", bce, probabilities, probabilities, (3, 4), label=" weight"
)


def bce_logits(x, t, w=1.0, pos=1.0):
    return w * (pos * t * softplus(-x) + (1 - t) * softplus(x))


name = "binary_cross_entropy_with_logits"
pointwise(name, bce_logits, (3, 4), probabilities)
pointwise(name, bce_logits, (3, 4), probabilities, (3, 4), label=" weight")
for reduction in ("none", "mean"):
    case(
        f"nn.functional.{name}",
        lambda hf, x, t, p, r=reduction: (
            hf.nn.functional.binary_cross_entropy_with_logits(
                x, t, pos_weight=p, reduction=r
            )
        ),
        lambda x, t, p, r=reduction: reduced(bce_logits(x, t, 1.0, p), r),
        (3, 4),
        probabilities,
        rng.uniform(0.5, 2, 4),
        label=f" pos_weight {reduction}",
    )

pointwise("kl_div", lambda x, t: t * (np.log(t) - x), (3, 4), probabilities)
pointwise(
    "kl_div",
    lambda x, t: np.exp(t) * (t - x),
    (3, 4),
    (3, 4),
    log_target=True,
    label=" log",
)
case(
    "nn.functional.kl_div",
    lambda hf, x, t: hf.nn.functional.kl_div(x, t, reduction="batchmean"),
    lambda x, t: (t * (np.log(t) - x)).sum() / 3,
    (3, 4),
    probabilities,
    label=" batchmean",
)
pointwise("poisson_nll_loss", lambda x, t: np.exp(x) - t * x, (3, 4), (3, 4))


def stirling(t):
    safe = np.maximum(t, 1)
    full = safe * np.log(safe) - safe + 0.5 * np.log(2 * math.pi * safe)
    return np.where(t > 1, full, 0)


pointwise(
    "poisson_nll_loss",
    lambda x, t: x - t * np.log(x + 1e-8) + stirling(t),
    probabilities,
    np.array([[0.0, 2.0, 3.0, 1.0]] * 3),
    grad=(0,),
    log_input=False,
    full=True,
    label=" rate",
)
for shape in [(3, 4), (3, 1), (3,)]:
    pointwise(
        "gaussian_nll_loss",
        lambda x, t, v: 0.5
        * (np.log(v.reshape(3, -1)) + (x - t) ** 2 / v.reshape(3, -1))
        + 0.5 * math.log(2 * math.pi),
        (3, 4),
        (3, 4),
        rng.uniform(0.3, 2, shape),
        full=True,
        label=f" var={list(shape)}",
    )

# ---- classes

weights = np.array([0.5, 1.0, 2.0, 0.25])


def class_loss(x, t, weight=None, ignore=-100, smoothing=0.0, reduction="mean"):
    """cross_entropy of scores [N, C, ...] and classes [N, ...]."""
    lp = np.moveaxis(log_softmax(x, 1), 1, -1)
    kept = t != ignore
    safe = np.where(kept, t, 0)
    w = np.ones(lp.shape[-1]) if weight is None else weight
    picked = -np.take_along_axis(lp, safe[..., None], -1)[..., 0] * w[safe]
    uniform = -(lp * w).sum(-1) / lp.shape[-1]
    loss = np.where(kept, (1 - smoothing) * picked + smoothing * uniform, 0)
    if reduction == "mean":
        return loss.sum() / np.where(kept, w[safe], 0).sum()
    return reduced(loss, reduction)


for shape in [(5, 4), (2, 4, 3), (2, 4, 2, 2)]:
    target = ints(shape[:1] + shape[2:], 0, 4)
    for kwargs in [
        {},
        {"ignore": 1},
        {"weight": weights},
        {"weight": weights, "ignore": 2, "smoothing": 0.2},
        {"smoothing": 0.3, "reduction": "sum"},
        {"weight": weights, "reduction": "none"},
    ]:

        def entropy(hf, x, t, k=kwargs):
            w = k.get("weight")
            return hf.nn.functional.cross_entropy(
                x,
                t,
                None if w is None else hf.tensor(w.tolist(), dtype=x.dtype),
                ignore_index=k.get("ignore", -100),
                label_smoothing=k.get("smoothing", 0.0),
                reduction=k.get("reduction", "mean"),
            )

        case(
            "nn.functional.cross_entropy",
            entropy,
            lambda x, t, k=kwargs: class_loss(x, t, **k),
            shape,
            target,
            label=" " + " ".join(kwargs),
        )
    case(
        "nn.functional.nll_loss",
        lambda hf, x, t: hf.nn.functional.nll_loss(x, t),
        lambda x, t: -np.take_along_axis(
            np.moveaxis(x, 1, -1), t[..., None], -1
        ).mean(),
        shape,
        target,
    )


def soft_loss(x, t, smoothing=0.0, weight=1.0):
    t = t * (1 - smoothing) + smoothing / x.shape[1]
    return -(log_softmax(x, 1) * t * weight).sum(1).mean()


soft = rng.dirichlet(np.ones(4), 5)
for smoothing in (0.0, 0.1):
    case(
        "nn.functional.cross_entropy",
        lambda hf, x, t, s=smoothing: hf.nn.functional.cross_entropy(
            x, t, label_smoothing=s
        ),
        lambda x, t, s=smoothing: soft_loss(x, t, s),
        (5, 4),
        soft,
        label=f" probabilities {smoothing}",
    )
case(
    "nn.functional.cross_entropy",
    lambda hf, x, t: hf.nn.functional.cross_entropy(x, t),
    lambda x, t: class_loss(x[None], t[None]),
    (4,),
    np.array(2),
    label=" one sample",
)

# ---- of a linear layer's outputs

rows = np.random.default_rng(12).integers(0, 4, 7)
rows[2] = -100
for kwargs in [
    {},
    {"reduction": "sum", "smoothing": 0.2},
    {"reduction": "none"},
    {"weight": weights, "smoothing": 0.1},
]:
    for size in (None, 3):

        def linear_loss(hf, x, w, b, t, kwargs=kwargs, size=size):
            own = kwargs.get("weight")
            return hf.nn.functional.linear_cross_entropy(
                x,
                w,
                t,
                linear_bias=b,
                weight=None if own is None else hf.tensor(own.tolist(), dtype=x.dtype),
                label_smoothing=kwargs.get("smoothing", 0.0),
                reduction=kwargs.get("reduction", "mean"),
                options=hf.nn.LinearCrossEntropyOptions(batch_chunk_size=size),
            )

        case(
            "nn.functional.linear_cross_entropy",
            linear_loss,
            lambda x, w, b, t, k=kwargs: class_loss(x @ w.T + b, t, **k),
            (7, 3),
            (4, 3),
            (4,),
            rows,
            label=f" {' '.join(kwargs)} by {size}",
        )
for size in (None, 2):
    case(
        "nn.functional.linear_cross_entropy",
        lambda hf, x, w, t, s=size: hf.nn.functional.linear_cross_entropy(
            x, w, t, options=hf.nn.LinearCrossEntropyOptions(batch_chunk_size=s)
        ),
        lambda x, w, t: soft_loss(x @ w.T, t, 0.0),
        (5, 3),
        (4, 3),
        soft,
        label=f" probabilities by {size}",
    )

# ---- margins

pointwise(
    "hinge_embedding_loss",
    lambda x, t: np.where(t == 1, x, np.maximum(0, 0.7 - x)),
    away_from([0.7], (3, 4)),
    signs,
    grad=(0,),
    margin=0.7,
)
pointwise(
    "margin_ranking_loss",
    lambda a, b, t: np.maximum(0, -t * (a - b) + 0.3),
    away_from([0.3, -0.3], (3, 4)),
    zeros,
    signs,
    grad=(0, 1),
    margin=0.3,
)
pointwise(
    "soft_margin_loss",
    lambda x, t: np.log1p(np.exp(-t * x)),
    (3, 4),
    signs,
    grad=(0,),
)


def cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


pointwise(
    "cosine_embedding_loss",
    lambda a, b, t: np.where(t == 1, 1 - cosine(a, b), np.maximum(0, cosine(a, b))),
    rng.uniform(0.1, 1, (3, 4)),
    rng.uniform(0.1, 1, (3, 4)),
    np.array([1, -1, 1]),
)


def distance(a, b):
    return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))


def triplet(swap):
    def run(a, p, n):
        far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
        return np.maximum(0, distance(a, p) - far + 3.0)

    return run


for swap in (False, True):
    for name in ("triplet_margin_loss", "triplet_margin_with_distance_loss"):
        pointwise(
            name,
            triplet(swap),
            (3, 4),
            (3, 4),
            (3, 4),
            margin=3.0,
            swap=swap,
            label=f" swap={swap}",
        )


def multi_margin(p, weight=None):
    def run(x, t):
        picked = np.take_along_axis(x, t[:, None], 1)
        hinge = np.maximum(0, 1 - picked + x) ** p
        if weight is not None:
            hinge = hinge * weight[t][:, None]
        np.put_along_axis(hinge, t[:, None], 0, 1)
        return hinge.sum(1) / x.shape[1]

    return run


classes = ints((3,), 0, 4)
for p in (1, 2):
    pointwise(
        "multi_margin_loss", multi_margin(p), (3, 4), classes, p=p, label=f" p={p}"
    )
case(
    "nn.functional.multi_margin_loss",
    lambda hf, x, t, w: hf.nn.functional.multi_margin_loss(x, t, weight=w),
    lambda x, t, w: multi_margin(1, w)(x, t).mean(),
    (3, 4),
    classes,
    weights,
    grad=(0,),
    label=" weight",
)


def multilabel_margin(x, t):
    losses = []
    for row, labels in zip(x, t):
        end = list(labels).index(-1) if -1 in labels else len(labels)
        wanted = list(labels[:end])
        others = [i for i in range(len(row)) if i not in wanted]
        gaps = [max(0, 1 - (row[j] - row[i])) for j in wanted for i in others]
        losses.append(sum(gaps) / len(row))
    return np.array(losses)


pointwise(
    "multilabel_margin_loss",
    multilabel_margin,
    (3, 4),
    np.array([[3, 0, -1, 1], [1, -1, 2, 3], [-1, 0, 1, 2]]),
)
pointwise(
    "multilabel_soft_margin_loss",
    lambda x, t: bce_logits(x, t).mean(-1),
    (3, 4),
    probabilities,
)
