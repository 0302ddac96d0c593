# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Dropout (Srivastava et al. 2014)."""

import holdfast
from holdfast import _C

__all__ = ["dropout", "dropout2d"]

_ops = _C.ops


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p and scales the rest by 1/(1-p).

    Returns the input itself when not training or when p is 0.
    """
    _check(p)
    if not training or p == 0:
        return input
    output, _ = _ops.dropout(input, p)
    return input.copy_(output) if inplace else output


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of [N, C, H, W] or [C, H, W] with probability p."""
    _check(p)
    if input.dim() not in (3, 4):
        raise RuntimeError(
            f"[dropout2d] input must be [N, C, H, W] or [C, H, W]. "
            f"Got {tuple(input.shape)}."
        )
    if not training or p == 0:
        return input
    planes = tuple(input.shape[:-2]) + (1, 1)
    keep, _ = _ops.dropout(holdfast.ones(planes, dtype=input.dtype), p)
    return input.mul_(keep) if inplace else input * keep


def _check(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
