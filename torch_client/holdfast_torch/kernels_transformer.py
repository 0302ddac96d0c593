# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators that torch.nn's attention and transformer layers call in place of their own
Python when they are evaluated."""

import holdfast as hf
import torch
from holdfast import _C, aten

from holdfast_torch.composites import (
    declare,
    declare_holdfast as composite,
    gradients,
)

F = torch.nn.functional
# What a mask's sizes mean: query by key, batch by key, or batch by head by both.
_SOURCE, _PADDING, _FULL = range(3)


@composite("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(query, key, value, *args, attn_mask=None, scale=None):
    dtype = query.dtype
    if dtype in (_C.float16, _C.bfloat16):
        query, key, value = (_C.ops.to(x, _C.float32) for x in (query, key, value))
    output, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, *args, attn_mask=attn_mask, scale=scale
    )
    return _C.ops.to(output, dtype), logsumexp


@composite("_scaled_dot_product_flash_attention_for_cpu_backward")
def _flash_attention_backward(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    dropout_p,
    is_causal,
    *,
    attn_mask=None,
    scale=None,
):
    def attend(query, key, value):
        return hf.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask, 0.0, is_causal, scale
        )

    return gradients(attend, grad_out, query, key, value)


def _projected(query, key, value, weight, bias):
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, -1)
    triples = zip((query, key, value), weight.chunk(3), bias.chunk(3))
    return [F.linear(*triple) for triple in triples]


def _per_head(x, heads):
    """[B, L, E] as [B, heads, L, E / heads]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _spread(mask, mask_type):
    """A mask whose sizes broadcast over [B, heads, L, S]."""
    if mask_type == _PADDING:
        return mask[:, None, None, :]
    return mask if mask_type == _FULL or mask.dim() != 3 else mask[:, None]


def _attend(query, key, value, heads, mask, mask_type):
    """(values [B, L, E], weights [B, heads, L, S]); True in a mask hides."""
    query, key, value = (_per_head(x, heads) for x in (query, key, value))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        hidden = _spread(mask.bool(), mask_type)
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2).flatten(2), weights


@declare("_native_multi_head_attention")
def _native_multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    projected = _projected(query, key, value, qkv_weight, qkv_bias)
    values, weights = _attend(*projected, num_head, mask, mask_type)
    result = F.linear(values, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


@declare("_transformer_encoder_layer_fwd")
def _transformer_encoder_layer_fwd(
    src,
    embed_dim,
    num_heads,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    use_gelu,
    norm_first,
    eps,
    norm_weight_1,
    norm_bias_1,
    norm_weight_2,
    norm_bias_2,
    ffn_weight_1,
    ffn_bias_1,
    ffn_weight_2,
    ffn_bias_2,
    mask=None,
    mask_type=None,
):
    size = (embed_dim,)

    def attention(x):
        projected = _projected(x, x, x, qkv_weight, qkv_bias)
        values = _attend(*projected, num_heads, mask, mask_type)[0]
        return F.linear(values, proj_weight, proj_bias)

    def feed_forward(x):
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    def first(x):
        return F.layer_norm(x, size, norm_weight_1, norm_bias_1, eps)

    def second(x):
        return F.layer_norm(x, size, norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attention(first(src))
        return src + feed_forward(second(src))
    src = first(src + attention(src))
    return second(src + feed_forward(src))
