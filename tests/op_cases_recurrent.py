# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of recurrent layers and of attention."""

import math

import numpy as np
from op_cases import case


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def cell(mode, x, r, h, c):
    """One step from both kinds of gates: (h, c)."""
    if mode in ("tanh", "relu"):
        return (np.tanh(x + r) if mode == "tanh" else np.maximum(x + r, 0)), c
    if mode == "lstm":
        i, f, g, o = np.split(x + r, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(r, 3, -1)
    z = sigmoid(xz + hz)
    n = np.tanh(xn + sigmoid(xr + hr) * hn)
    return (1 - z) * n + z * h, c


def reference(mode, reverse, sizes=None):
    """All outputs, then the last state."""

    def run(x, h, w_ih, w_hh, b_ih, b_hh, c=None):
        counts = [h.shape[0]] * len(x) if sizes is None else sizes
        rows = np.cumsum([0] + counts)
        gates = x.reshape(-1, x.shape[-1]) @ w_ih.T + b_ih
        h, c = h.copy(), np.zeros_like(h) if c is None else c.copy()
        out = np.zeros((len(gates), h.shape[1]))
        order = range(len(counts))
        for t in reversed(order) if reverse else order:
            live = counts[t]
            at = slice(rows[t], rows[t] + live)
            r = h[:live] @ w_hh.T + b_hh
            h[:live], c[:live] = cell(mode, gates[at], r, h[:live], c[:live])
            out[at] = h[:live]
        return np.concatenate([out, h, c] if mode == "lstm" else [out, h])

    return run


def ours(mode, reverse, sizes=None):
    def run(hf, x, h, w_ih, w_hh, b_ih, b_hh, c=None):
        counts = None if sizes is None else hf.tensor(sizes)
        result = hf._C.ops.rnn_layer(
            x, counts, h, c, w_ih, w_hh, b_ih, b_hh, mode, reverse, True
        )
        out = result[0].reshape(-1, h.shape[1])
        states = result[1:3] if mode == "lstm" else result[1:2]
        return hf.cat([out, *states])

    return run


GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
for mode, gates in GATES.items():
    for reverse in (False, True):
        for sizes in (None, [3, 2, 2, 1]):
            rows = (4, 3) if sizes is None else (8,)
            state = [(3, 2)] if mode == "lstm" else []
            case(
                "rnn_layer",
                ours(mode, reverse, sizes),
                reference(mode, reverse, sizes),
                rows + (3,),
                (3, 2),
                (gates * 2, 3),
                (gates * 2, 2),
                (gates * 2,),
                (gates * 2,),
                *state,
                label=f" {mode} reverse={reverse}",
                second=False,
            )


def layer_backward(hf, g, x, h, w_ih, w_hh):
    """The gradients of the input and of the weights."""
    layer = (x, None, h, None, w_ih, w_hh, None, None)
    out, _, _, reserve = hf._C.ops.rnn_layer(*layer, "tanh", False, True)
    grads = hf._C.ops.rnn_layer_backward(
        g, None, None, *layer, out, reserve, "tanh", False, 3
    )
    return hf.cat([grads[i].flatten() for i in (0, 3, 4)])


def layer_backward_reference(g, x, h, w_ih, w_hh):
    states = [h]
    for step in x:
        states.append(np.tanh(step @ w_ih.T + states[-1] @ w_hh.T))
    grads, dh = [], np.zeros_like(h)
    d_ih, d_hh = np.zeros_like(w_ih), np.zeros_like(w_hh)
    for t in reversed(range(len(x))):
        da = (dh + g[t]) * (1 - states[t + 1] ** 2)
        grads.insert(0, da @ w_ih)
        d_ih += da.T @ x[t]
        d_hh += da.T @ states[t]
        dh = da @ w_hh
    return np.concatenate([a.ravel() for a in (*grads, d_ih, d_hh)])


case(
    "rnn_layer_backward",
    layer_backward,
    layer_backward_reference,
    (4, 3, 2),
    (4, 3, 3),
    (3, 2),
    (2, 3),
    (2, 2),
    grad=(),
)

# ---- attention


def attention(q, k, v, mask=None, scale=None):
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    scores = scores if mask is None else scores + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


allowed = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 1, 1], [1, 1, 1, 1, 1]], bool)
banned = np.where(allowed, 0, -np.inf)
causal = np.where(np.tril(np.ones((3, 5))) > 0, 0, -np.inf)
name = "nn.functional.scaled_dot_product_attention"
for label, kwargs, mask in [
    ("", {}, None),
    (" causal", {"is_causal": True}, causal),
    (" scale", {"scale": 0.3}, None),
]:
    case(
        name,
        lambda hf, q, k, v, a=kwargs: (
            hf.nn.functional.scaled_dot_product_attention(q, k, v, **a)
        ),
        lambda q, k, v, m=mask, s=kwargs.get("scale"): attention(q, k, v, m, s),
        (2, 2, 3, 4),
        (2, 2, 5, 4),
        (2, 2, 5, 3),
        label=label,
    )
case(
    name,
    lambda hf, q, k, v, m: hf.nn.functional.scaled_dot_product_attention(q, k, v, m),
    lambda q, k, v, m: attention(q, k, v, banned),
    (3, 4),
    (5, 4),
    (5, 3),
    allowed,
    label=" bool mask",
)
case(
    name,
    lambda hf, q, k, v, m: hf.nn.functional.scaled_dot_product_attention(q, k, v, m),
    attention,
    (2, 3, 4),
    (2, 5, 4),
    (2, 5, 3),
    (3, 5),
    label=" float mask",
)


def weighted(q, k, v, causal, scale):
    """The weights and the logarithms of their sums."""
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
    sums = np.exp(scores).sum(-1, keepdims=True)
    return np.exp(scores) / sums, np.log(sums)


def attention_op(hf, q, k, v, causal, scale):
    out, logsumexp = hf._C.ops.attention(q, k, v, causal, scale)
    return hf.cat([out, logsumexp.unsqueeze(-1)], -1)


def attention_op_reference(q, k, v, causal, scale):
    weights, logsumexp = weighted(q, k, v, causal, scale)
    return np.concatenate([weights @ v, logsumexp], -1)


def attention_backward(hf, d, q, k, v, causal, scale):
    out, logsumexp = hf._C.ops.attention(q, k, v, causal, scale)
    grads = hf._C.ops.attention_backward(d, q, k, v, out, logsumexp, causal, scale)
    return hf.cat([x.flatten() for x in grads])


def attention_backward_reference(d, q, k, v, causal, scale):
    p, _ = weighted(q, k, v, causal, scale)
    g = d @ v.swapaxes(-1, -2)
    z = p * (g - (p * g).sum(-1, keepdims=True)) * scale
    grads = z @ k, z.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ d
    return np.concatenate([x.ravel() for x in grads])


for causal, scale, lead, rows, keys in [
    (False, 0.5, (2, 2), 3, 5),
    (True, -0.7, (2, 3), 5, 3),
    (True, 0.4, (), 4, 6),
    (False, 1.0, (5,), 2, 1),
]:
    tensors = [lead + (rows, 4), lead + (keys, 4), lead + (keys, 3)]
    settings = {"causal": causal, "scale": scale}
    case(
        "attention",
        lambda hf, q, k, v, a=settings: attention_op(hf, q, k, v, **a),
        lambda q, k, v, a=settings: attention_op_reference(q, k, v, **a),
        *tensors,
        label=f" causal={causal}",
    )
    case(
        "attention_backward",
        lambda hf, d, q, k, v, a=settings: attention_backward(hf, d, q, k, v, **a),
        lambda d, q, k, v, a=settings: attention_backward_reference(d, q, k, v, **a),
        lead + (rows, 3),
        *tensors,
        grad=(),
        label=f" causal={causal}",
    )
