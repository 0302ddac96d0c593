# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Attention (Vaswani et al. 2017)."""

import math

import holdfast
from holdfast import _C
from holdfast.errors import HoldfastError, OpError

from .dropouts import dropout

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_ops = _C.ops


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """softmax(query key^T * scale + mask) value.

    query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V].
    A bool mask is True where attending is allowed; `scale` is 1/sqrt(E) unless
    given. enable_gqa: query has a multiple of key's heads (dimension -3), each of
    which serves as many of query's. dropout_p applies whatever the mode.
    """
    try:
        return _attend(
            query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
        )
    except HoldfastError as error:
        # The ops that it is made of have shapes that the caller has not.
        _explain(error, query, key, value, attn_mask, enable_gqa)
        if isinstance(error, IndexError):
            raise OpError(str(error)) from None
        raise


def _attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = _shared(query, key), _shared(query, value)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if attn_mask is None and dropout_p == 0 and _is_one_op(query, key, value):
        return _ops.attention(query, key, value, bool(is_causal), float(factor))[0]
    weights = _weights(query, key, attn_mask, is_causal, factor)
    return dropout(weights, dropout_p).matmul(value)


def _explain(error, query, key, value, attn_mask, enable_gqa):
    """Changes the error to say what does not fit, if that is the shapes or types."""
    reason = _misfit(query, key, value, attn_mask, enable_gqa)
    if reason is not None:
        tensors = {"query": query, "key": key, "value": value, "attn_mask": attn_mask}
        got = ", ".join(
            f"{name}={x.dtype.name}{list(x.shape)}"
            for name, x in tensors.items()
            if x is not None
        )
        text = f"[scaled_dot_product_attention] {reason}. Got {got}."
        error.args = (text, *error.args[1:])


def _misfit(query, key, value, attn_mask, enable_gqa):
    """What must hold and does not, or None."""
    q, k, v = (tuple(x.shape) for x in (query, key, value))
    if min(len(q), len(k), len(v)) < 2:
        return "query, key and value must have at least 2 dimensions"
    if len({query.dtype, key.dtype, value.dtype}) > 1:
        types = " ".join(
            f"{name}.dtype: {x.dtype.name}"
            for name, x in (("query", query), ("key", key), ("value", value))
        )
        return f"Expected query, key, and value to have the same dtype, but got {types}"
    if q[-1] != k[-1]:
        return (
            f"query and key must have one last dimension, but got {q[-1]} and {k[-1]}"
        )
    if k[-2] != v[-2]:
        return f"key and value must have one length, but got {k[-2]} and {v[-2]}"
    if len(q) > 2 and len(k) > 2 and q[-3] != k[-3] and 1 not in (q[-3], k[-3]):
        hint = "" if enable_gqa or q[-3] % k[-3] else "; enable_gqa=True repeats key's"
        return f"query has {q[-3]} heads and key {k[-3]}{hint}"
    try:
        lead = _broadcast(q[:-2], k[:-2])
        _broadcast(lead, v[:-2])
    except RuntimeError:
        return "the dimensions before the last two must broadcast"
    if attn_mask is not None:
        want = (*lead, q[-2], k[-2])
        try:
            fits = tuple(_broadcast(tuple(attn_mask.shape), want)) == want
        except RuntimeError:
            fits = False
        if not fits:
            return f"attn_mask must broadcast to {list(want)}"
    return None


def _broadcast(a, b):
    return tuple(holdfast.broadcast_shapes(a, b))


def _weights(query, key, attn_mask, is_causal, factor):
    """softmax(query key^T * factor + mask)."""
    # The smaller tensor is the one to scale.
    scores = (query * factor).matmul(key.transpose(-2, -1))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set "
                "when is_causal=True"
            )
        rows, columns = query.shape[-2], key.shape[-2]
        attn_mask = holdfast.ones((rows, columns)).tril() > 0
    if attn_mask is not None:
        scores = _masked(scores, attn_mask)
    return scores.softmax(-1)


def _scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    need_attn_weights=False,
    is_causal=False,
):
    """PyTorch 1.13's form: (result, weights), the latter needed or not."""
    factor = 1 / math.sqrt(query.shape[-1])
    weights = dropout(_weights(query, key, attn_mask, is_causal, factor), dropout_p)
    return weights.matmul(value), weights


def _is_one_op(query, key, value):
    """Whether they are batches of equal size, which `attention` computes."""
    lead = query.shape[:-2]
    return query.dim() >= 2 and all(
        x.dtype.is_floating_point and x.dim() >= 2 and x.shape[:-2] == lead
        for x in (query, key, value)
    )


def _shared(query, heads):
    """Each head of [..., H, S, E] repeated next to itself up to query's number."""
    have, want = heads.shape[-3], query.shape[-3]
    if want % have != 0:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in "
            f"query. Got {have} and {want}."
        )
    shape = tuple(heads.shape)
    wide = shape[:-2] + (want // have,) + shape[-2:]
    return heads.unsqueeze(-3).expand(wide).reshape(shape[:-3] + (want,) + shape[-2:])


def _masked(scores, mask):
    """A bool mask is True where attending is allowed; another is added."""
    if mask.dtype == holdfast.bool:
        return holdfast.where(mask, scores, -math.inf)
    return scores + mask


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """What nn.MultiheadAttention computes; query [L, N, E] or [L, E].

    key and value are [S, N, *]; masks as there. Returns (output [L, N, E],
    weights [N, L, S] or None).
    """
    single = query.dim() == 2
    if single:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got "
            f"{width}"
        )
    head = width // num_heads
    if head * num_heads != width:
        raise AssertionError(
            f"embed_dim {width} not divisible by num_heads {num_heads}"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = in_proj_weight
    q, k, v = _project(query, key, value, weights, in_proj_bias)
    # A mask that is said to be causal needs no looking at.
    is_causal = is_causal and not need_weights and key_padding_mask is None
    is_causal = is_causal and bias_k is None and not add_zero_attn
    if is_causal:
        attn_mask = None
    mask = _float_mask(attn_mask, q.dtype)
    if mask is not None and mask.dim() == 3:
        mask = mask.reshape(batch, num_heads, *mask.shape[1:])
    padding = _float_mask(key_padding_mask, q.dtype)
    if bias_k is not None and bias_v is not None:
        k = holdfast.cat([k, bias_k.expand(1, batch, width)])
        v = holdfast.cat([v, bias_v.expand(1, batch, width)])
        mask, padding = _one_more(mask), _one_more(padding)

    def heads(x):  # [T, N, E] -> [N, heads, T, E / heads]
        return x.reshape(x.shape[0], batch, num_heads, head).permute(1, 2, 0, 3)

    q = heads(q)
    k = heads(k) if static_k is None else _static(static_k, batch, num_heads)
    v = heads(v) if static_v is None else _static(static_v, batch, num_heads)
    if add_zero_attn:
        zeros = holdfast.zeros((batch, num_heads, 1, head), dtype=k.dtype)
        k, v = holdfast.cat([k, zeros], 2), holdfast.cat([v, zeros], 2)
        mask, padding = _one_more(mask), _one_more(padding)
    if padding is not None:
        padding = padding.unsqueeze(1).unsqueeze(1)
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        attention = (q * (1 / math.sqrt(head))).matmul(k.transpose(-2, -1))
        if mask is not None:
            attention = attention + mask
        attention = dropout(attention.softmax(-1), dropout_p)
        mixed = attention.matmul(v)
    else:
        mixed = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    mixed = mixed.permute(2, 0, 1, 3).reshape(length * batch, width)
    output = _ops.linear(mixed, out_proj_weight, out_proj_bias)
    output = output.reshape(length, batch, -1)
    if not need_weights:
        return (output.squeeze(1) if single else output), None
    if average_attn_weights:
        attention = attention.mean(1)
    if single:
        return output.squeeze(1), attention.squeeze(0)
    return output, attention


def _project(query, key, value, weights, bias):
    """query, key, value through their parts of the projection."""
    if isinstance(weights, tuple):
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        inputs = zip((query, key, value), weights, biases)
        return [_ops.linear(x, w, b) for x, w, b in inputs]
    width = query.shape[-1]
    if query is key and key is value:
        joined = _ops.linear(query, weights, bias)
        return [joined.narrow(-1, i * width, width) for i in range(3)]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    inputs = zip((query, key, value), weights.chunk(3), biases)
    return [_ops.linear(x, w, b) for x, w, b in inputs]


def _float_mask(mask, dtype):
    """A mask that is True where attending is *not* allowed, as one to add."""
    if mask is None or mask.dtype.is_floating_point:
        return mask
    if mask.dtype != holdfast.bool:
        raise AssertionError("only bool and floating types of masks are supported")
    zeros = holdfast.zeros(tuple(mask.shape), dtype=dtype)
    return holdfast.where(mask, -math.inf, zeros)


def _one_more(mask):
    """The mask for one more key, which everybody may attend to."""
    return None if mask is None else _ops.constant_pad(mask, [0, 1])


def _static(heads, batch, num_heads):
    """[N * heads, S, E] as [N, heads, S, E]."""
    return heads.reshape(batch, num_heads, *heads.shape[1:])
