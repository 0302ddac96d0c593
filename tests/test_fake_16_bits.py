# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Pooling, resampling, dropout and losses of 16-bit floats by the CUDA kernels'
sources, compiled for the host: results and gradients are float32's, rounded once."""

import numpy as np
import pytest


ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


@pytest.fixture(scope="module")
def module_session(cuda_sources_session):
    return cuda_sources_session


def resized(**options):
    return lambda t, x: t.nn.functional.interpolate(x, **options)


OPS = {
    "max": lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1),
    "max of two": lambda t, x: t.nn.functional.max_pool2d(x, 2),
    "max of seven": lambda t, x: t.nn.functional.max_pool2d(x, 7, 1, 3),
    "max dilated": lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, 2),
    "max of volumes": lambda t, x: t.nn.functional.max_pool3d(x, 3, 2, 1),
    "max adaptive": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, (5, 4)),
    "mean": lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1),
    "mean of overhanging windows": lambda t, x: t.nn.functional.avg_pool2d(
        x, 4, 3, 2, ceil_mode=True, count_include_pad=False
    ),
    "mean by 7": lambda t, x: t.nn.functional.avg_pool2d(x, 2, divisor_override=7),
    "mean adaptive": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (5, 4)),
    "nearest": resized(scale_factor=2),
    "bilinear": resized(size=(29, 7), mode="bilinear"),
    "bicubic": resized(size=(40, 30), mode="bicubic", align_corners=True),
    "narrowed": resized(size=(5, 9), mode="bilinear", antialias=True),
    "dropout": lambda t, x: t.nn.functional.dropout(x, 0.3),
    "dropout of columns": lambda t, x: t.nn.functional.dropout(x.mT, 0.3),
}


def with_gradient(torch, op, x, seed):
    """op(x) and the gradient of what differs from result to result."""
    torch.manual_seed(seed)
    leaf = x.detach().requires_grad_()
    y = op(torch, leaf)
    rng = np.random.default_rng(1)
    g = torch.from_numpy(rng.integers(-8, 9, y.shape).astype("f4") / 8)
    y.backward(g.to(y.dtype))
    return y.detach(), leaf.grad


@pytest.mark.parametrize("kind", ULP)
@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_planes(torch, op, kind):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((2, 3, 17, 13)).astype("f4"))
    x = x.to(getattr(torch, kind))
    narrow = with_gradient(torch, op, x, 5)
    wide = with_gradient(torch, op, x.float(), 5)
    for ours, theirs in zip(narrow, wide, strict=True):
        assert ours.dtype == x.dtype
        rounded = theirs.to(x.dtype).float().numpy()
        np.testing.assert_allclose(ours.float().numpy(), rounded, ULP[kind], 1e-7)


@pytest.mark.parametrize("kind", ULP)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(torch, reduction, kind):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((33, 7)).astype("f4"))
    weight = torch.from_numpy(rng.uniform(0.5, 2, 7).astype("f4"))
    x, weight = (a.to(getattr(torch, kind)) for a in (x, weight))
    target = torch.from_numpy(rng.integers(0, 7, 33))
    target[3] = 2
    target[30] = -100

    def run(dtype):
        leaf = x.to(dtype).detach().requires_grad_()
        loss = torch.nn.functional.nll_loss(
            leaf, target, weight.to(dtype), reduction=reduction
        )
        loss.sum().backward()
        return loss.detach(), leaf.grad

    for ours, theirs in zip(run(x.dtype), run(torch.float32), strict=True):
        assert ours.dtype == x.dtype
        expected = theirs.numpy()
        # The sum of weights, by which gradients are scaled, is rounded too.
        np.testing.assert_allclose(ours.float().numpy(), expected, 2 * ULP[kind])
        assert (ours == 0).sum().item() == (expected == 0).sum()


@pytest.mark.parametrize("offset", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 3, 4, 17, 1023, 4097])
def test_dropout_of_any_size_draws_the_same_numbers(torch, size, offset):
    torch.manual_seed(9)
    expected = torch.nn.functional.dropout(torch.ones(5000), 0.4)[:size].numpy()
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        torch.manual_seed(9)
        x = torch.ones(size + offset, dtype=dtype)[offset:]
        y = torch.nn.functional.dropout(x, 0.4).float().numpy()
        np.testing.assert_allclose(y, expected, 0.01)
    torch.manual_seed(9)
    strided = torch.nn.functional.dropout(torch.ones(size, 2)[:, 0], 0.4)
    np.testing.assert_array_equal(strided.numpy(), expected)


def test_what_dropout_keeps_at_the_ends(torch):
    x = torch.full((37,), 2.0)
    assert torch.nn.functional.dropout(x, 0.0).tolist() == [2.0] * 37
    assert torch.nn.functional.dropout(x, 1.0).tolist() == [0.0] * 37
