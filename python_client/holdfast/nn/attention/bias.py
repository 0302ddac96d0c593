# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.nn.attention.bias: causal masks for scaled_dot_product_attention."""

import enum

import holdfast
from holdfast.missing import module_getattr

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the triangle of queries and keys of different lengths begins."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def _triangle(size, diagonal):
    return holdfast.ones(size, dtype=holdfast.bool).tril(diagonal)


def causal_upper_left(*size):
    """A bool mask [queries, keys] for attn_mask: the first query sees the first key."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return _triangle(size, 0)


def causal_lower_right(*size):
    """A bool mask [queries, keys] for attn_mask: the last query sees every key."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return _triangle(size, size[1] - size[0])


__getattr__ = module_getattr("torch.nn.attention.bias")
