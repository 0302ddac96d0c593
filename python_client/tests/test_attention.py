# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention as one op beside the products that it is made of."""

import math

import holdfast
import numpy as np
import pytest
from holdfast.nn import functional as F

rng = np.random.default_rng(11)


def tensors(lead, rows, keys, width=8, values=6, dtype=holdfast.float32):
    shapes = (rows, width), (keys, width), (keys, values)
    return [
        holdfast.tensor(rng.normal(size=lead + s)).to(dtype).requires_grad_()
        for s in shapes
    ]


def composed(q, k, v, causal=False):
    scores = q.matmul(k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    if causal:
        seen = holdfast.ones(scores.shape[-2:]).tril() > 0
        scores = holdfast.where(seen, scores, -math.inf)
    return scores.softmax(-1).matmul(v)


def with_gradients(function, inputs, **kwargs):
    out = function(*inputs, **kwargs)
    weights = holdfast.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.dtype)
    return out, *holdfast.autograd.grad((out * weights).sum(), inputs)


def check(inputs, causal, tolerance):
    one = with_gradients(F.scaled_dot_product_attention, inputs, is_causal=causal)
    parts = with_gradients(composed, inputs, causal=causal)
    for ours, expected in zip(one, parts):
        np.testing.assert_allclose(
            ours.detach().float().numpy(),
            expected.detach().float().numpy(),
            rtol=tolerance,
            atol=tolerance,
        )


# More rows than a block has, in parallel over heads and by all threads for one head.
@pytest.mark.parametrize(
    "lead, rows, keys",
    [((2, 3), 300, 700), ((5,), 130, 64), ((), 700, 8200), ((1, 1), 1, 9)],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [holdfast.float32, holdfast.float64])
def test_blocks(lead, rows, keys, causal, dtype):
    tolerance = 2e-5 if dtype == holdfast.float32 else 1e-12
    check(tensors(lead, rows, keys, dtype=dtype), causal, tolerance)


@pytest.mark.parametrize("dtype", [holdfast.float16, holdfast.bfloat16])
def test_16_bits(dtype):
    check(tensors((2, 2), 40, 50, dtype=dtype), True, 3e-2)


def test_heads_that_lie_apart():
    """As nn.MultiheadAttention makes them: parts of one product."""
    joined = holdfast.tensor(rng.normal(size=(20, 3, 3 * 16)).astype("float32"))
    joined.requires_grad_()

    def heads(function):
        parts = [x.reshape(20, 3, 4, 4).permute(1, 2, 0, 3) for x in joined.chunk(3, 2)]
        out = function(*parts)
        return out, *holdfast.autograd.grad(out.pow(2).sum(), joined)

    for ours, expected in zip(heads(F.scaled_dot_product_attention), heads(composed)):
        np.testing.assert_allclose(
            ours.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5
        )


def test_expanded_and_transposed_inputs():
    q, k, v = tensors((2,), 7, 7, width=7, values=7)
    inputs = [q[:1].expand(2, 7, 7), k.transpose(1, 2), v.flip(1)[:, ::1]]
    ours = F.scaled_dot_product_attention(*inputs)
    np.testing.assert_allclose(
        ours.detach().numpy(), composed(*inputs).detach().numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("rows, keys", [(0, 3), (3, 0), (0, 0)])
def test_nothing_to_attend_to(rows, keys):
    inputs = tensors((2, 2), rows, keys)
    out, *grads = with_gradients(F.scaled_dot_product_attention, inputs)
    assert out.shape == (2, 2, rows, 6) and not out.any()
    for x, grad in zip(inputs, grads):
        assert grad.shape == x.shape and not grad.any()


def test_not_a_number_stays_one():
    q, k, v = tensors((1,), 4, 4)
    with holdfast.no_grad():
        q[0, 1, 0] = math.nan
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert out.isnan().any(-1).tolist() == [[False, True, False, False]]


def test_is_recorded_as_one_node_and_differentiated_twice():
    inputs = tensors((2,), 3, 4, dtype=holdfast.float64)
    assert len(F.scaled_dot_product_attention(*inputs).grad_fn.next_functions) == 3
    for causal in (False, True):
        assert holdfast.autograd.gradgradcheck(
            lambda *x, c=causal: F.scaled_dot_product_attention(*x, is_causal=c),
            inputs,
            fast_mode=True,
        )


def test_autocast_takes_16_bits():
    inputs = tensors((2, 2), 5, 6)
    with holdfast.autocast("cpu", dtype=holdfast.bfloat16):
        out = F.scaled_dot_product_attention(*inputs)
    assert out.dtype == holdfast.bfloat16
    grads = holdfast.autograd.grad(out.float().sum(), inputs)
    assert [g.dtype for g in grads] == [holdfast.float32] * 3


def test_multihead_attention_knows_a_causal_mask():
    layer = holdfast.nn.MultiheadAttention(8, 2)
    x = holdfast.tensor(rng.normal(size=(5, 3, 8)).astype("float32"))
    mask = holdfast.ones(5, 5).tril() == 0
    expected, weights = layer(x, x, x, attn_mask=mask)
    assert weights is not None
    for is_causal in (False, True):
        ours, weights = layer(
            x, x, x, attn_mask=mask, need_weights=False, is_causal=is_causal
        )
        assert weights is None
        np.testing.assert_allclose(
            ours.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda q, k, v: (q, k.double(), v), "query, key, and value to have the same"),
        (lambda q, k, v: (q[..., :3], k, v), "one last dimension, but got 3 and 8"),
        (lambda q, k, v: (q, k[:, :2], v), "one length, but got 2 and 5"),
    ],
)
def test_what_does_not_fit_is_said(change, words):
    with pytest.raises(RuntimeError, match=words):
        F.scaled_dot_product_attention(*change(*tensors((2,), 4, 5)))


def test_hostile_operands_of_the_backward_are_refused():
    ops = holdfast._C.ops
    q, k, v = (x.detach() for x in tensors((2,), 4, 5))
    out, lse = ops.attention(q, k, v, False, 1.0)
    for d, y, l in [(out[:1], out, lse), (out, out[..., :2], lse), (out, out, lse[:1])]:
        with pytest.raises(RuntimeError, match="must be"):
            ops.attention_backward(d, q, k, v, y, l, False, 1.0)
