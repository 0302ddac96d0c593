# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The cross entropy of a linear layer's outputs, which need not be kept."""

import dataclasses

import holdfast
from holdfast import _C

from .loss import cross_entropy

__all__ = ["linear_cross_entropy"]

_ops = _C.ops


@dataclasses.dataclass
class LinearCrossEntropyOptions:
    """batch_chunk_size rows at a time have their outputs in memory, and again in the
    backward. The other fields are PyTorch's, for its kernels, and change nothing."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    input [N, in] or [in]; linear_weight [C, in] or, for N rows, [C, d1, ..., in];
    target and the rest as cross_entropy() has them for outputs [N, C, d1, ...].
    ignore_index is -100 if None, and none for probabilities. options: a
    LinearCrossEntropyOptions, whose batch_chunk_size bounds the outputs in memory.
    """
    classes, *sizes, features = linear_weight.shape
    _check(input, linear_weight, linear_bias)
    shape = (*input.shape[:-1], classes, *sizes)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities. Got "
            f"ignore_index={ignore_index} and target {list(target.shape)}."
        )
    rows = linear_weight.reshape(-1, features)
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    how = {
        "weight": weight,
        "ignore_index": -100 if ignore_index is None else ignore_index,
        "label_smoothing": label_smoothing,
    }

    def loss(x, y, reduction):
        outputs = _ops.linear(x, rows, bias).reshape(*x.shape[:-1], classes, *sizes)
        return cross_entropy(outputs, y, reduction=reduction, **how)

    size = getattr(options, "batch_chunk_size", None)
    if size and input.dim() == 2 and size < input.size(0):
        return _in_chunks(loss, size, input, target, reduction, shape, how)
    return loss(input, target, reduction)


def _check(input, linear_weight, linear_bias):
    if input.dim() not in (1, 2) or linear_weight.dim() < 2:
        raise RuntimeError(
            "linear_cross_entropy(): input must have 1 or 2 dimensions and "
            f"linear_weight at least 2. Got {list(input.shape)} and "
            f"{list(linear_weight.shape)}."
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            "linear_cross_entropy(): losses of several dimensions need rows of input. "
            f"Got {list(input.shape)}, linear_weight {list(linear_weight.shape)}."
        )
    if input.size(-1) != linear_weight.size(-1):
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.size(-1)} and {linear_weight.size(-1)}, respectively"
        )
    wanted = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != wanted:
        raise RuntimeError(
            f"expected linear_bias shape {wanted}, got {tuple(linear_bias.shape)}"
        )


def _in_chunks(loss, size, input, target, reduction, shape, how):
    """The loss of `size` rows at a time; their outputs are computed again in the
    backward instead of being kept."""
    from holdfast.utils.checkpoint import checkpoint

    each = "none" if reduction == "none" else "sum"
    parts = [
        checkpoint(loss, x, y, each, use_reentrant=False)
        for x, y in zip(input.split(size), target.split(size))
    ]
    if reduction == "none":
        return holdfast.cat(parts)
    total = holdfast.stack(parts).sum()
    if reduction == "sum":
        return total
    if tuple(target.shape) == shape:
        return total / (target.numel() // shape[1])
    kept = target != how["ignore_index"]
    if how["weight"] is None:
        return total / kept.sum()
    own = how["weight"][_ops.where(kept, target, 0)]
    return total / _ops.where(kept, own, 0.0).sum()
