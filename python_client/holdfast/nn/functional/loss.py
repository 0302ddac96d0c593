# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Losses over classes and over real values."""

import warnings

import holdfast
from holdfast import _C

from .activation import log_softmax
from .reduction import reduced, reduction_of

__all__ = [
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]

_ops = _C.ops


# ---- classes


def nll_loss(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
):
    """Negative log likelihood of the target classes.

    input: log-probabilities [N, C], [C] or [N, C, d1, ...]; target: int64
    classes [N], [] or [N, d1, ...]; weight [C]. Targets equal to ignore_index
    count for nothing. "mean" divides by the sum of the targets' weights.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return _nll(input, target, weight, ignore_index, reduction)


def _nll(input, target, weight, ignore_index, reduction):
    batch = target.shape[0] if target.dim() else 0
    if input.dim() > 1 and input.shape[0] != batch:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target "
            f"batch_size ({batch})."
        )
    if input.dim() == 2:
        return _ops.nll_loss(input, target, weight, reduction, ignore_index)[0]
    if input.dim() == 1:
        loss = _nll(
            input.unsqueeze(0), target.reshape(1), weight, ignore_index, reduction
        )
        return loss.reshape(()) if reduction == "none" else loss
    shape = tuple(input.shape)
    if len(shape) < 3 or tuple(target.shape) != shape[:1] + shape[2:]:
        raise ValueError(
            "[nll_loss] target must be [N, d1, ...] for input [N, C, d1, ...]. Got "
            f"input {shape}, target {tuple(target.shape)}."
        )
    rows = input.permute(0, *range(2, len(shape)), 1).reshape(-1, shape[1])
    loss = _nll(rows, target.reshape(-1), weight, ignore_index, reduction)
    return loss.reshape(target.shape) if reduction == "none" else loss


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """nll_loss(log_softmax(input, 1), target), or of class probabilities.

    input: scores [N, C], [C] or [N, C, d1, ...]. target: int64 classes, as for
    nll_loss, or probabilities of input's shape. label_smoothing in [0, 1] mixes
    in the uniform distribution (Szegedy et al. 2016).
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(
            "label_smoothing must be between 0.0 and 1.0. Got: " f"{label_smoothing}"
        )
    if input.dim() == 0:
        raise RuntimeError("[cross_entropy] input must have a class dimension. Got [].")
    class_dim = 0 if input.dim() == 1 else 1
    log_probs = log_softmax(input, class_dim)
    if tuple(target.shape) == tuple(input.shape) and target.dtype.is_floating_point:
        return _soft_cross_entropy(
            log_probs, target, weight, class_dim, reduction, label_smoothing
        )
    if target.dtype.is_floating_point:
        raise RuntimeError(
            "[cross_entropy] target must hold int64 classes, or probabilities of "
            f"input's shape. Got input {tuple(input.shape)}, target "
            f"{target.dtype} {tuple(target.shape)}."
        )
    loss = _nll(log_probs, target, weight, ignore_index, reduction)
    if label_smoothing == 0.0:
        return loss
    smooth = _smoothed(log_probs, target, weight, class_dim, ignore_index, reduction)
    share = label_smoothing / input.shape[class_dim]
    return (1 - label_smoothing) * loss + share * smooth


def _smoothed(log_probs, target, weight, class_dim, ignore_index, reduction):
    """The loss against every class at once, reduced as nll_loss reduces."""
    weighted = log_probs
    if weight is not None:
        weighted = log_probs * _per_class(weight, log_probs, class_dim)
    kept = target != ignore_index
    loss = holdfast.where(kept, -weighted.sum(class_dim), 0.0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if weight is None:
        return loss.sum() / kept.sum()
    # An ignored target need not be a class; class 0 stands in for it.
    classes = holdfast.where(kept, target, 0).reshape(-1)
    weights = weight.index_select(0, classes).reshape(target.shape)
    return loss.sum() / holdfast.where(kept, weights, 0.0).sum()


def _soft_cross_entropy(
    log_probs, target, weight, class_dim, reduction, label_smoothing
):
    classes = log_probs.shape[class_dim]
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    if weight is not None:
        target = target * _per_class(weight, log_probs, class_dim)
    loss = -(log_probs * target).sum(class_dim)
    if reduction == "mean":
        return loss.sum() / (log_probs.numel() / classes)
    return reduced(loss, reduction)


def _per_class(weight, scores, class_dim):
    shape = [1] * scores.dim()
    shape[class_dim] = -1
    return weight.reshape(shape)


# ---- real values


def _warn_sizes(input, target):
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"Using a target size ({tuple(target.shape)}) that is different to the "
            f"input size ({tuple(input.shape)}). This will likely lead to incorrect "
            "results due to broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Squared difference."""
    reduction = reduction_of(reduction, size_average, reduce)
    _warn_sizes(input, target)
    return reduced(
        holdfast.square(input - target), reduction, "MseLossBackward0", input, target
    )


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Absolute difference."""
    reduction = reduction_of(reduction, size_average, reduce)
    _warn_sizes(input, target)
    return reduced((input - target).abs(), reduction)


def smooth_l1_loss(
    input, target, size_average=None, reduce=None, reduction="mean", beta=1.0
):
    """d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2.

    Girshick 2015.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    _warn_sizes(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    node = "SmoothL1LossBackward0"
    difference = input - target
    if beta == 0:
        return reduced(difference.abs(), reduction, node, input, target)
    loss = reduced(_ops.huber(difference, beta), reduction)
    loss = loss if beta == 1 else loss / beta
    return _C.show_as(loss, node, input, target)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """d^2 / 2 where d = |input - target| < delta, else delta * (d - delta / 2).

    Huber 1964.
    """
    reduction = reduction_of(reduction)
    _warn_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    loss = _ops.huber(input - target, delta)
    return reduced(loss, reduction, "HuberLossBackward0", input, target)


def kl_div(
    input,
    target,
    size_average=None,
    reduce=None,
    reduction="mean",
    log_target=False,
):
    """target * (log target - input); input (and, if log_target, target) are logs.

    Besides the usual reductions, "batchmean" divides the sum by the batch size.
    """
    if reduction != "batchmean":
        reduction = reduction_of(reduction, size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 0 log 0 is 0.
        positive = target > 0
        # A target that is differentiated has no gradient at 0: NaN, as in PyTorch.
        safe = target if target.requires_grad else holdfast.where(positive, target, 1.0)
        logs = safe.log()
        loss = holdfast.where(positive, target * (logs - input), -target * input)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return reduced(loss, reduction)


def poisson_nll_loss(
    input,
    target,
    log_input=True,
    full=False,
    size_average=None,
    eps=1e-8,
    reduce=None,
    reduction="mean",
):
    """Negative log likelihood of a Poisson target of (log) rate input."""
    reduction = reduction_of(reduction, size_average, reduce)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        # Stirling's formula for log(target!).
        safe = target.clamp(min=1)
        stirling = safe * safe.log() - safe + 0.5 * (6.283185307179586 * safe).log()
        loss = loss + holdfast.where(target > 1, stirling, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood of a normal target of mean input and variance var."""
    reduction = reduction_of(reduction)
    if tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape)[:-1] == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif tuple(input.shape)[:-1] != tuple(var.shape)[:-1] or var.shape[-1] != 1:
            raise ValueError("var is of incorrect size")
    # The floor carries no gradient.
    var = var + (var.detach().clamp(min=eps) - var.detach())
    difference = input - target
    loss = 0.5 * (var.log() + difference * difference / var)
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return reduced(loss, reduction)
