# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Dropout (Srivastava et al. 2014)."""

import warnings

import holdfast
from holdfast import _C

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

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


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of [N, C, L] or [C, L] with probability p."""
    return _channels("dropout1d", input, 1, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of [N, C, H, W] or [C, H, W] with probability p."""
    return _channels("dropout2d", input, 2, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of [N, C, D, H, W] or [C, D, H, W] with probability p."""
    return _channels("dropout3d", input, 3, p, training, inplace)


def _channels(name, input, inner, p, training, inplace):
    _check(p)
    expected = input.dim() in (inner + 1, inner + 2)
    if not expected and (inner == 1 or input.dim() < 2):
        raise RuntimeError(
            f"[{name}] input must have {inner + 1} or {inner + 2} dimensions. "
            f"Got {tuple(input.shape)}."
        )
    if not expected:
        warnings.warn(
            f"{name}: Received a {input.dim()}-D input, not a {inner + 1}-D or "
            f"{inner + 2}-D one: dimensions 0 and 1 are taken for samples and "
            "channels",
            stacklevel=4,
        )
    if not training or p == 0:
        return input
    apart = input.dim() - inner if expected else 2
    planes = tuple(input.shape[:apart]) + (1,) * (input.dim() - apart)
    keep, _ = _ops.dropout(holdfast.ones(planes, dtype=input.dtype), p)
    return input.mul_(keep) if inplace else input * keep


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return _alpha(input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels (dimensions 0 and 1 stay apart)."""
    _check(p)
    if not training or p == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError(
            "Feature dropout requires at least 2 dimensions in the input"
        )
    shape = tuple(input.shape[:2]) + (1,) * (input.dim() - 2)
    return _alpha(input, shape, p, training, inplace)


def _alpha(input, shape, p, training, inplace):
    _check(p)
    if not training or p == 0:
        return input
    if p == 1:
        output = input * 0.0
        return input.copy_(output) if inplace else output
    # What selu tends to for large negative inputs takes the place of zero.
    low = -1.7580993408473766
    a = ((1 - p) * (1 + p * low * low)) ** -0.5
    keep = holdfast.bernoulli(holdfast.full(shape, 1 - p, dtype=input.dtype))
    # a (x keep + low (1 - keep)) - a low p
    offset = (1 - keep) * (a * low) - a * low * p
    output = input * (keep * a) + offset
    return input.copy_(output) if inplace else output


def _check(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
