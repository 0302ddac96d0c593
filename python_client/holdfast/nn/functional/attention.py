# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Attention (Vaswani et al. 2017)."""

import math

import holdfast

from .dropout import dropout

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None
):
    """softmax(query key^T * scale + mask) value.

    query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V].
    A bool mask is True where attending is allowed; `scale` is 1/sqrt(E) unless
    given.
    """
    rows, columns = query.shape[-2], key.shape[-2]
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.matmul(key.transpose(-2, -1)) * factor
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "[scaled_dot_product_attention] attn_mask must be None when "
                "is_causal is True."
            )
        attn_mask = holdfast.ones((rows, columns)).tril() > 0
    if attn_mask is not None:
        if attn_mask.dtype == holdfast.bool:
            scores = holdfast.where(attn_mask, scores, -math.inf)
        else:
            scores = scores + attn_mask
    weights = dropout(scores.softmax(-1), dropout_p, training=dropout_p > 0)
    return weights.matmul(value)
