# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Losses over two classes."""

from holdfast import _C

from .activation import logsigmoid
from .reduction import reduced, reduction_of

_ops = _C.ops

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits"]


def binary_cross_entropy(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean"
):
    """-(target log input + (1 - target) log(1 - input)).

    input: probabilities; target: values in [0, 1] of the same shape. Logarithms
    are limited to -100, so that the loss and its gradient stay finite.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    _check_sizes(input, target)
    if not (input.requires_grad and _C.is_grad_enabled()):
        loss = _limited_cross_entropy(input, target)
    else:
        loss = _recorded_cross_entropy(input, target)
    return reduced(
        loss if weight is None else loss * weight,
        reduction,
        "BinaryCrossEntropyBackward0",
        input,
        target,
    )


def _limited_cross_entropy(input, target):
    log_p = input.log().clamp(min=-100)
    log_q = (-input).log1p().clamp(min=-100)
    return -(target * log_p + (1 - target) * log_q)


def _recorded_cross_entropy(input, target):
    """With PyTorch's gradient, (input - target) / max(input (1 - input), 1e-12).

    At 0 and 1 the logarithms' own is 0 times infinity. There the input counts as a
    constant, and a term that is 0 has the slope.
    """
    limit = 1e-4 if input.dtype == _C.float16 else 1e-12
    fixed = input.detach()
    edge = fixed * (1 - fixed) < limit
    loss = _limited_cross_entropy(_ops.where(edge, fixed, input), target)
    slope = ((fixed - target) / limit).masked_fill(~edge, 0)
    return loss + slope * (input - fixed)


def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average=None,
    reduce=None,
    reduction="mean",
    pos_weight=None,
):
    """binary_cross_entropy(sigmoid(input), target), without overflow.

    pos_weight, broadcast with target, multiplies the positive part.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    _check_sizes(input, target)
    if pos_weight is None:
        loss = (1 - target) * input - logsigmoid(input)
    else:
        factor = 1 + (pos_weight - 1) * target
        loss = (1 - target) * input - factor * logsigmoid(input)
    return reduced(
        loss if weight is None else loss * weight,
        reduction,
        "BinaryCrossEntropyWithLogitsBackward0",
        input,
        target,
    )


def _check_sizes(input, target):
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size "
            f"({input.shape})"
        )
