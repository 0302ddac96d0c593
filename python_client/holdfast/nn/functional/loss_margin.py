# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Losses that ask for a margin: between scores, classes, or distances."""

import holdfast

from .activation import logsigmoid
from .embedding import pairwise_distance
from .reduction import reduced, reduction_of

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def hinge_embedding_loss(
    input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"
):
    """input where target is 1, max(0, margin - input) where it is -1; both added
    where it is neither."""
    reduction = reduction_of(reduction, size_average, reduce)
    hinge = holdfast.where(target == 1, 0.0, (margin - input).clamp(min=0))
    loss = hinge + holdfast.where(target == -1, 0.0, input)
    return reduced(loss, reduction)


def margin_ranking_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = reduction_of(reduction, size_average, reduce)
    loss = (-target * (input1 - input2) + margin).clamp(min=0)
    return reduced(loss, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    return reduced((-target * input).exp().log1p(), reduction)


def cosine_embedding_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    norms = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cosine = dot / norms.sqrt()
    loss = holdfast.where(target == 1, 1 - cosine, (cosine - margin).clamp(min=0))
    return reduced(loss, reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p: float = 2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm.

    `swap` uses d(positive, negative) where it is smaller (Balntas et al. 2016).
    """
    reduction = reduction_of(reduction, size_average, reduce)

    def distance(a, b):
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    """triplet_margin_loss with any distance (pairwise_distance unless given)."""
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(
        anchor, positive, negative, distance, margin, swap, reduction_of(reduction)
    )


def _triplet(anchor, positive, negative, distance, margin, swap, reduction):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = holdfast.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), reduction)


def _rows(name, input, target, target_dim):
    """input as [N, C] and target with it; ValueError for other shapes."""
    if input.dim() <= 1 and target.dim() <= 1 and (target.numel() == 1 or target_dim):
        rows = (1,) if target_dim == 0 else (1, -1)
        return input.reshape(1, -1), target.reshape(rows)
    if input.dim() != 2 or target.dim() != target_dim + 1:
        raise RuntimeError(
            f"[{name}] expected input [N, C] or [C] and a target to match. Got "
            f"input {list(input.shape)}, target {list(target.shape)}."
        )
    return input, target


def multi_margin_loss(
    input,
    target,
    p: float = 1,
    margin=1.0,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """sum over i != y of max(0, margin - x[y] + x[i])^p, over the classes' number.

    input [N, C] or [C], target int64 [N] or []; weight [C] scales by target; p is
    1 or 2.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    single = target.dim() == 0
    input, target = _rows("multi_margin_loss", input, target, 0)
    index = target.unsqueeze(1)
    hinge = (margin - input.gather(1, index) + input).clamp(min=0)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * weight.index_select(0, target).unsqueeze(1)
    loss = hinge.scatter(1, index, 0.0).sum(1) / input.shape[1]
    return reduced(loss.squeeze(0) if single else loss, reduction)


def multilabel_margin_loss(
    input, target, size_average=None, reduce=None, reduction="mean"
):
    """max(0, 1 - (x[y] - x[i])) over target classes y and others i, over C.

    input [N, C] or [C]; target, of the same shape, lists int64 classes up to the
    first -1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    single = input.dim() <= 1
    if tuple(input.shape) != tuple(target.shape):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: "
            f"{list(input.shape)}"
        )
    input, target = _rows("multilabel_margin_loss", input, target, 1)
    listed = (target < 0).cumsum(1) == 0
    classes = holdfast.where(listed, target, 0)
    counts = holdfast.zeros(tuple(input.shape), dtype=input.dtype)
    is_target = counts.scatter_add(1, classes, listed.to(input.dtype)) > 0
    # [N, listed label, other class]
    gaps = 1 - input.gather(1, classes).unsqueeze(2) + input.unsqueeze(1)
    counted = listed.unsqueeze(2).logical_and(is_target.logical_not().unsqueeze(1))
    loss = holdfast.where(counted, gaps.clamp(min=0), 0.0).sum((1, 2))
    loss = loss / input.shape[1]
    return reduced(loss.squeeze(0) if single else loss, reduction)


def multilabel_soft_margin_loss(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """Binary cross entropy of scores, averaged over the classes (last dimension)."""
    reduction = reduction_of(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)
