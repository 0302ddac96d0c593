# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Softmax by the CUDA kernels' sources, compiled for the host: rows that threads keep
and rows that they walk, other dimensions than the last, addresses that packs do not
fit, 16-bit floats, infinities and NaN."""

import numpy as np
import pytest

from offset_tensors import tensor_at

ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SHAPES = [
    ((5, 1), 1),
    ((7, 16), 1),
    ((7, 17), 1),
    ((3, 32), -1),
    ((3, 257), -1),
    ((3, 1024), -1),
    ((2, 1025), -1),
    ((2, 4104), -1),
    ((2, 8192), -1),
    ((2, 8193), -1),
    ((2, 16400), -1),
    ((3, 5, 2), 1),
    ((2, 300, 3), 1),
    ((2, 3, 40), 1),
    ((2, 32, 40), 1),
    ((2, 70, 33), 1),
    ((9000, 2), 0),
]


@pytest.fixture(scope="module")
def module_session(cuda_sources_session):
    return cuda_sources_session


def softmax(x, dim):
    powers = np.exp(x - x.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


def gradients(x, g, dim):
    """Of softmax and log_softmax."""
    y = softmax(x, dim)
    return (
        y * (g - (g * y).sum(dim, keepdims=True)),
        g - y * g.sum(dim, keepdims=True),
    )


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype, tolerance", [("f4", 2e-6), ("f8", 1e-13)])
@pytest.mark.parametrize("shape, dim", SHAPES, ids=str)
def test_softmax_and_gradients(torch, shape, dim, dtype, tolerance, offset):
    rng = np.random.default_rng(2)
    x, g = (4 * rng.standard_normal(shape) for _ in range(2))
    x, g = x.astype(dtype), g.astype(dtype)
    y = softmax(x.astype("f8"), dim)
    expected = (y, np.log(y)), gradients(x.astype("f8"), g.astype("f8"), dim)
    for log, name in enumerate(["softmax", "log_softmax"]):
        leaf = tensor_at(torch, x, offset).requires_grad_()
        got = getattr(leaf, name)(dim)
        got.backward(tensor_at(torch, g, offset))
        for ours, theirs in (got.detach(), expected[0][log]), (
            leaf.grad,
            expected[1][log],
        ):
            scale = tolerance * max(1, np.abs(theirs).max())
            np.testing.assert_allclose(ours.numpy(), theirs, 20 * tolerance, scale)


@pytest.mark.parametrize("kind", ULP)
@pytest.mark.parametrize("shape, dim", SHAPES, ids=str)
def test_16_bit_rows_are_float32s_rounded_once(torch, shape, dim, kind):
    rng = np.random.default_rng(4)
    x = torch.from_numpy(rng.standard_normal(shape).astype("f4"))
    g = torch.from_numpy(rng.standard_normal(shape).astype("f4"))
    x, g = (a.to(getattr(torch, kind)) for a in (x, g))
    for name in ("softmax", "log_softmax"):
        narrow, wide = getattr(x, name)(dim), getattr(x.float(), name)(dim)
        assert narrow.dtype == x.dtype
        np.testing.assert_allclose(
            narrow.float().numpy(), wide.to(x.dtype).float().numpy(), ULP[kind], 1e-7
        )
        leaf = x.detach().requires_grad_()
        getattr(leaf, name)(dim).backward(g)
        # Of the rounded result, which is what is kept.
        y, wide_g = narrow.float(), g.float()
        if name == "softmax":
            expected = y * (wide_g - (wide_g * y).sum(dim, keepdim=True))
        else:
            expected = wide_g - y.exp() * wide_g.sum(dim, keepdim=True)
        np.testing.assert_allclose(
            leaf.grad.float().numpy(), expected.numpy(), 2 * ULP[kind], 2e-5
        )


@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("n", [8, 512, 8192, 16384])
def test_where_memory_begins_changes_no_bit(torch, n, offset):
    rng = np.random.default_rng(5)
    x, g = (rng.standard_normal((3, n)).astype("f4") for _ in range(2))
    results = []
    for at in (0, offset):
        leaf = tensor_at(torch, x, at).requires_grad_()
        y = leaf.softmax(-1)
        y.backward(tensor_at(torch, g, at))
        results.append((y.detach().numpy(), leaf.grad.numpy()))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n", [4, 40, 2000, 16384])
def test_infinities_and_nan(torch, n):
    inf, nan = float("inf"), float("nan")
    rows = np.zeros((6, n), "f4")
    rows[0, : n // 2] = -inf  # half of it counts
    rows[1] = -inf
    rows[2, 1] = inf
    rows[3, n - 1] = nan
    rows[4, 0], rows[4, 1:] = nan, -inf
    with np.errstate(invalid="ignore"):
        expected = softmax(rows.astype("f8"), 1)
    expected[3:5] = nan
    x = torch.from_numpy(rows)
    np.testing.assert_allclose(x.softmax(1).numpy(), expected, 1e-6)
    with np.errstate(divide="ignore"):
        expected = np.log(expected)
    np.testing.assert_allclose(x.log_softmax(1).numpy(), expected, 1e-6, 1e-6)
