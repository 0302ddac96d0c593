# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.ops.aten, and what it has that is nowhere else, against NumPy."""

import math

import numpy as np
import pytest

rng = np.random.default_rng(3)


def tensors(torch, *arrays):
    return [torch.tensor(a).requires_grad_() for a in arrays]


def test_operators_are_the_functions_of_their_names(torch):
    aten = torch.ops.aten
    x = torch.arange(6.0).reshape(2, 3)
    assert aten.add(x, 1).tolist() == (x + 1).tolist()
    assert aten.add.Tensor(x, x, alpha=2).tolist() == (3 * x).tolist()
    assert aten.sum.dim_IntList(x, (0,)).tolist() == [3, 5, 7]
    assert aten.linalg_det.default(torch.eye(2)).item() == 1
    assert aten.slice.Tensor(x, 1, 0, 3, 2).tolist() == [[0, 2], [3, 5]]
    assert aten.relu_(x - 1)[0].tolist() == [0, 0, 1]
    # embedding(weight, indices) is not nn.functional.embedding(input, weight).
    for name in ("embedding", "nonsense"):
        with pytest.raises(AttributeError, match=f"torch.ops.aten.{name}"):
            getattr(aten, name)


def test_gradients_of_softmax(torch):
    x, g = tensors(torch, *rng.uniform(-1, 1, (2, 3, 4)))
    for forward, backward in (
        (torch.softmax, torch.ops.aten._softmax_backward_data),
        (torch.log_softmax, torch.ops.aten._log_softmax_backward_data),
    ):
        y = forward(x, 1)
        (want,) = torch.autograd.grad(y, x, g)
        got = backward(g, y, 1, x.dtype)
        np.testing.assert_allclose(got.detach(), want, rtol=1e-12)
        assert torch.autograd.gradcheck(lambda g, y: backward(g, y, 1, x.dtype), (g, y))


def test_safe_softmax_of_a_row_that_is_masked_out(torch):
    x = np.array([[1.0, -math.inf, 2.0], [-math.inf] * 3])
    (own,) = tensors(torch, x)
    result = torch.ops.aten._safe_softmax.default(own, 1)
    e = np.exp([1.0, -math.inf, 2.0])
    np.testing.assert_allclose(result.detach(), [e / e.sum(), [0, 0, 0]])
    (gradient,) = torch.autograd.grad((result * torch.arange(3.0)).sum(), own)
    assert np.isfinite(gradient.numpy()).all() and gradient[1].tolist() == [0, 0, 0]


def test_gradients_of_dropout_and_pooling(torch):
    g, x = tensors(torch, rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (2, 4, 4)))
    mask = torch.tensor([[True, False, True], [False, True, True]])
    got = torch.ops.aten.native_dropout_backward.default(g, mask, 2.0)
    np.testing.assert_array_equal(got.detach(), g.detach().numpy() * mask.numpy() * 2)
    y, places = torch.nn.functional.max_pool2d_with_indices(x, 2, return_indices=True)
    gradient = torch.rand_like(y)
    (want,) = torch.autograd.grad(y, x, gradient)
    got = torch.ops.aten.max_pool2d_with_indices_backward.default(
        gradient, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places
    )
    np.testing.assert_array_equal(got.detach(), want)


@pytest.mark.parametrize("how", ["plain", "causal", "mask", "bool"])
def test_attention_with_the_scores_logsumexp(torch, how):
    q, k, v = rng.uniform(-1, 1, (3, 2, 2, 4, 3))
    bias = {
        "plain": np.zeros((4, 4)),
        "causal": np.where(np.tri(4), 0, -np.inf),
        "mask": rng.uniform(-1, 1, (4, 4)),
        "bool": np.where(np.tri(4, k=1), 0, -np.inf),
    }[how]
    scores = np.exp(0.7 * q @ k.swapaxes(-1, -2) + bias)
    options = {"scale": 0.7, "is_causal": how == "causal"}
    if how == "mask":
        options["attn_mask"] = torch.tensor(bias)
    elif how == "bool":
        options["attn_mask"] = torch.tensor(bias == 0)
    output, total = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *tensors(torch, q, k, v), **options
    )
    sums = scores.sum(-1)
    np.testing.assert_allclose(output.detach(), scores / sums[..., None] @ v)
    np.testing.assert_allclose(total, np.log(sums))
    assert output.requires_grad and not total.requires_grad


def test_smooth_resizing(torch):
    (x,) = tensors(torch, rng.uniform(0, 1, (1, 2, 6, 8)))
    aten, resized = torch.ops.aten, torch.nn.functional.interpolate
    for mode in ("bilinear", "bicubic"):
        operator = getattr(aten, f"_upsample_{mode}2d_aa")
        want = resized(x, (3, 5), mode=mode, antialias=True)
        assert torch.equal(operator(x, (3, 5), False, None, None), want)
        assert torch.equal(operator.vec(x, (3, 5), False, scale_factors=None), want)
        by_factor = operator(x, None, True, scale_factors=[0.5, 0.25])
        want = resized(
            x, scale_factor=(0.5, 0.25), mode=mode, align_corners=True, antialias=True
        )
        assert torch.equal(by_factor, want)
        with pytest.raises(RuntimeError, match="exactly one"):
            operator(x, None, True, scale_factors=None)


def test_grid_samplers(torch):
    modes = ("bilinear", "nearest", "bicubic")
    borders = ("zeros", "border", "reflection")
    for axes in (2, 3):
        (x,) = tensors(torch, rng.uniform(-1, 1, (1, 2, 5, 4, 3)[: axes + 2]))
        places = (1, 3, 2, 2)[: axes + 1]
        (grid,) = tensors(torch, rng.uniform(-1.5, 1.5, (*places, axes)))
        sampler = getattr(torch, f"grid_sampler_{axes}d")
        for mode in range(3):
            for border in range(3):
                names = modes[mode], borders[border]
                want = torch.nn.functional.grid_sample(x, grid, *names, False)
                assert torch.equal(sampler(x, grid, mode, border, False), want)
        with pytest.raises(RuntimeError, match="dimensions"):
            sampler(x.unsqueeze(0), grid, 0, 0, False)
        with pytest.raises(RuntimeError, match="no padding_mode 3"):
            torch.grid_sampler(x, grid, 0, 3, False)


def test_cubic_sampling_of_a_volume_of_equal_planes(torch):
    plane, grid = tensors(
        torch, rng.uniform(-1, 1, (1, 2, 5, 4)), rng.uniform(-1.2, 1.2, (1, 3, 2, 2))
    )
    volume = plane.unsqueeze(2).expand(1, 2, 6, 5, 4)
    depth = torch.tensor(rng.uniform(-1, 1, (1, 1, 3, 2, 1)))
    places = torch.cat([grid.unsqueeze(1), depth], -1)
    for border in ("border", "reflection"):
        how = {"mode": "bicubic", "padding_mode": border, "align_corners": False}
        want = torch.nn.functional.grid_sample(plane, grid, **how)
        got = torch.nn.functional.grid_sample(volume, places, **how)
        np.testing.assert_allclose(got[:, :, 0].detach(), want.detach(), atol=1e-12)


def test_dense_memory_in_another_order(torch):
    x = torch.empty_permuted((2, 3, 4, 5), (0, 2, 3, 1), dtype=torch.float64)
    assert x.shape == (2, 3, 4, 5) and x.stride() == (60, 1, 15, 3)
    assert x.dtype is torch.float64
    for order in [(0, 0), (0,), (0, 2)]:
        with pytest.raises(RuntimeError, match="dim"):
            torch.empty_permuted((2, 3), order)


def test_the_next_number_has_the_gradient_of_the_number(torch):
    x, y = tensors(torch, np.array([[1.0, 2, 3]]), np.array([[1.0], [5.0]]))
    result = torch.nextafter(x, y)
    want = np.nextafter(x.detach().numpy(), y.detach().numpy())
    np.testing.assert_array_equal(result.detach(), want)
    of_x, of_y = torch.autograd.grad(result.sum(), (x, y))
    assert of_x.tolist() == [[1, 2, 2]] and of_y.tolist() == [[0], [0]]


def test_a_phase_that_the_loss_depends_on_is_refused(torch):
    (a,) = tensors(torch, np.array([[0.0, -1.0], [1.0, 0.5]]))
    vectors = torch.linalg.eig(a)[1]
    with pytest.raises(RuntimeError, match="ill-defined"):
        vectors.imag.sum().backward()


def test_wrong_shapes_of_roots_are_refused(torch):
    for f in (torch.linalg.matrix_sqrth, torch.linalg.polar):
        with pytest.raises(RuntimeError, match="at least 2"):
            f(torch.ones(3))
        with pytest.raises(RuntimeError, match="2 by 3"):
            f(torch.ones(2, 3))


def test_a_linear_layers_loss_with_wrong_shapes_is_refused(torch):
    loss = torch.nn.functional.linear_cross_entropy
    x, w, t = torch.ones(4, 3), torch.ones(5, 3), torch.tensor([0, 1, 2, 3])
    for args, options in [
        ((x, torch.ones(5, 2), t), {}),
        ((x, w, t), {"linear_bias": torch.ones(4)}),
        ((x[0], torch.ones(5, 2, 3), t), {}),
        ((x, w, torch.ones(4, 5)), {"ignore_index": 1}),
    ]:
        with pytest.raises(RuntimeError):
            loss(*args, **options)
