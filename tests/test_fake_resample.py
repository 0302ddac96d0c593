# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Resampling by the CUDA kernels' sources, compiled for the host: rows that packs fit
and rows that they do not, few taps per place and many."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def module_session(cuda_sources_session):
    return cuda_sources_session


MODES = [
    {"mode": "nearest"},
    {"mode": "area"},
    {"mode": "bilinear"},
    {"mode": "bilinear", "align_corners": True},
    {"mode": "bilinear", "antialias": True},
    {"mode": "bicubic"},
]
SIZES = [
    ((5, 6), (10, 12)),
    ((5, 6), (9, 11)),
    ((12, 16), (6, 8)),
    ((12, 16), (5, 4)),
    ((6, 8), (6, 16)),  # one axis stays
    ((6, 8), (18, 8)),
    ((3, 2), (40, 36)),  # each input is read by many outputs
]


def resized(torch, x, size, mode):
    return torch.nn.functional.interpolate(x, size=size, **mode)


def axis_matrix(torch, mode, size, out, dtype):
    """What resampling does along an axis: to columns, whose packs are single."""
    unit = torch.eye(size, dtype=dtype).view(size, 1, size, 1)
    return resized(torch, unit, (out, 1), mode).numpy()[:, 0, :, 0].T


@pytest.mark.parametrize("dtype, tolerance", [("float32", 4e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("size, out", SIZES, ids=str)
@pytest.mark.parametrize("mode", MODES, ids=lambda m: "-".join(map(str, m.values())))
def test_resampling_is_a_product_with_its_axes(
    torch, mode, size, out, dtype, tolerance
):
    rng = np.random.default_rng(2)
    kind = getattr(torch, dtype)
    x = rng.standard_normal((2, 3, *size)).astype(dtype)
    leaf = torch.from_numpy(x).requires_grad_()
    y = resized(torch, leaf, out, mode)
    g = rng.standard_normal(y.shape).astype(dtype)
    y.backward(torch.from_numpy(g))
    a = axis_matrix(torch, mode, size[0], out[0], kind)
    b = axis_matrix(torch, mode, size[1], out[1], kind)
    np.testing.assert_allclose(a.sum(1), np.ones(out[0]), 0, tolerance)
    np.testing.assert_allclose(y.detach().numpy(), a @ x @ b.T, 0, tolerance)
    scale = tolerance * max(1, a.sum(0).max() * b.sum(0).max())
    np.testing.assert_allclose(leaf.grad.numpy(), a.T @ g @ b, 0, scale)


@pytest.mark.parametrize("width", [7, 8])
def test_elements_that_do_not_count_are_not_read(torch, width):
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 0, 0] = float("inf")
    y = resized(torch, x, (7, width), {"mode": "bilinear", "align_corners": True})
    assert np.isinf(y.numpy()).sum() == {7: 2 * 2, 8: 2 * 3}[width]
    assert not np.isnan(y.numpy()).any()
