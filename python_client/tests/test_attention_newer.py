# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What PyTorch 2 has around attention: flex_attention, causal masks, sdpa_kernel.

The figures of flex_attention are PyTorch 2.15's on a CPU, of the same lines in float64.
"""

import pytest


def wave(torch, shape):
    return (
        (torch.arange(float(torch.Size(shape).numel()), dtype=torch.float64) * 0.37)
        .sin()
        .reshape(shape)
    )


@pytest.fixture
def qkv(torch):
    q = wave(torch, (1, 2, 3, 4))
    return q, (q * 2).cos(), q * 3


def causal(b, h, q, kv):
    return q >= kv


def test_scores_and_masks_by_functions(torch, qkv):
    from holdfast.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(causal, None, None, 3, 3, device="cpu")
    found = flex_attention(
        *qkv,
        score_mod=lambda score, b, h, q, kv: score + (h + 1) * (kv - q),
        block_mask=mask,
        scale=0.3,
    )
    assert found.flatten().tolist() == pytest.approx(
        [0.0, 1.084846296, 2.022863735, 2.687096057, 1.729704399, 2.12637064]
        + [2.235242591, 2.041584943, 1.059661747, 0.40826634, -0.298386002]
        + [-0.964653198, -2.889392792, -2.985719477, -2.677943038, -2.007719572]
        + [-1.285776951, -0.342241545, 0.647614649, 1.549819238, 1.583210787]
        + [2.089370654, 2.312744005, 2.223098304],
        abs=1e-8,
    )


def test_what_is_told_beside_the_output(torch, qkv):
    from holdfast.nn.attention.flex_attention import AuxRequest, flex_attention

    expected = [1.297739246, 1.827285482, 1.014259156]
    expected += [1.210576727, 1.149203988, 1.58957414]
    _, lse = flex_attention(*qkv, return_lse=True)
    assert lse.flatten().tolist() == pytest.approx(expected, abs=1e-8)
    _, told = flex_attention(*qkv, return_aux=AuxRequest(lse=True))
    assert told.lse.tolist() == lse.tolist() and told.max_scores is None


def test_groups_of_heads(torch, qkv):
    from holdfast.nn.attention.flex_attention import flex_attention

    q, k, v = qkv
    found = flex_attention(q[:, :, :1].repeat(1, 2, 1, 1), k, v, enable_gqa=True)
    assert found.flatten().tolist() == pytest.approx(
        [1.155404122, 1.038772042, 0.781547038, 0.41854331, 1.957033545, 1.937985667]
        + [1.65664052, 1.15107685, -0.6779483, -0.106129486, 0.480053457, 1.001263416]
        + [-0.075160448, 0.113690222, 0.287153454, 0.421751813],
        abs=1e-8,
    )
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex_attention(q.repeat(1, 2, 1, 1), k, v)
    with pytest.raises(ValueError, match="must be 4D"):
        flex_attention(q[0], k[0], v[0])


def test_it_is_attention_with_gradients(torch, qkv):
    from holdfast.nn.attention.flex_attention import create_block_mask, flex_attention

    results = []
    for attend in (
        lambda q, k, v: flex_attention(
            q, k, v, block_mask=create_block_mask(causal, 1, 1, 3, 3)
        ),
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        ),
    ):
        inputs = [x.clone().requires_grad_() for x in qkv]
        out = attend(*inputs)
        (out * wave(torch, out.shape)).sum().backward()
        results.append([out, *(x.grad for x in inputs)])
    for mine, theirs in zip(*results):
        assert torch.allclose(mine, theirs, atol=1e-12)


def test_a_query_that_sees_nothing_gets_zeros(torch, qkv):
    from holdfast.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, kv: q > kv, 1, 1, 3, 3)
    q, k, v = (x.clone().requires_grad_() for x in qkv)
    found = flex_attention(q, k, v, block_mask=mask)
    found.sum().backward()
    assert found[:, :, 0].abs().sum().item() == 0
    assert q.grad.isfinite().all().item()


def test_block_masks(torch):
    from holdfast.nn.attention import flex_attention as flex

    mask = flex.create_block_mask(causal, 1, 1, 300, 300)
    assert mask.shape == (1, 1, 300, 300)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.sparsity() == pytest.approx(100 / 3)
    near = flex.and_masks(causal, lambda b, h, q, kv: q - kv < 2)
    assert flex.create_mask(near, None, None, 3, 3)[0, 0].int().tolist() == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 1, 1],
    ]
    either = flex.or_masks(near, lambda b, h, q, kv: kv == 2)
    assert flex.create_mask(either, 2, 1, 3, 3).shape == (2, 1, 3, 3)
    assert flex.create_mask(either, 1, 1, 3, 3)[0, 0, 0].tolist() == [True, False, True]
    assert flex.create_mask(flex.noop_mask, 1, 1, 2, 2).all().item()


def test_causal_masks_and_kernels(torch, qkv):
    from holdfast.nn.attention import SDPBackend, bias, sdpa_kernel

    assert bias.causal_upper_left(2, 3).int().tolist() == [[1, 0, 0], [1, 1, 0]]
    lower = bias.causal_lower_right(2, 3)
    assert lower.int().tolist() == [[1, 1, 0], [1, 1, 1]]
    q, k, v = qkv
    attend = torch.nn.functional.scaled_dot_product_attention
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        found = attend(q[:, :, :2], k, v, attn_mask=lower)
    whole = attend(q[:, :, [0, 0, 1]], k, v, is_causal=True)
    assert torch.allclose(found, whole[:, :, 1:])
    with pytest.raises(TypeError, match="takes SDPBackends"):
        with sdpa_kernel("math"):
            pass
