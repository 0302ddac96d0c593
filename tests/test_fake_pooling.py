# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The gradient of average pooling by the CUDA kernels' sources, compiled for the host:
rows that packs fit and rows that they do not, few windows per place and many."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def module_session(cuda_sources_session):
    return cuda_sources_session


def starts(size, kernel, stride, padding, ceil):
    room = size + 2 * padding - kernel
    windows = (-(-room // stride) if ceil else room // stride) + 1
    if (windows - 1) * stride >= size + padding:
        windows -= 1
    return [i * stride - padding for i in range(windows)]


def pooling_gradient(x, g, kernel, stride, padding, ceil, include, divisor):
    out = np.zeros(x.shape)
    h, w = x.shape[-2:]
    for i, y in enumerate(starts(h, kernel, stride, padding, ceil)):
        for j, z in enumerate(starts(w, kernel, stride, padding, ceil)):
            rows = slice(max(y, 0), min(y + kernel, h))
            columns = slice(max(z, 0), min(z + kernel, w))
            if divisor:
                count = divisor
            elif include:
                count = min(y + kernel, h + padding) - y
                count *= min(z + kernel, w + padding) - z
            else:
                count = (rows.stop - rows.start) * (columns.stop - columns.start)
            out[..., rows, columns] += g[..., i, j, None, None] / count
    return out


# Kernel, stride, padding, ceil_mode, count_include_pad, divisor_override.
WINDOWS = [
    (2, 2, 0, False, True, None),
    (2, 2, 1, False, True, None),
    (2, 3, 0, False, True, None),
    (3, 1, 1, False, True, None),
    (3, 1, 1, False, False, None),
    (3, 2, 1, False, True, None),
    (3, 2, 1, True, True, None),
    (3, 2, 0, True, False, None),
    (3, 2, 1, False, False, 5),
    (5, 2, 2, False, False, None),
    (5, 1, 2, False, True, None),
    (6, 1, 3, True, False, None),
    (7, 1, 0, False, True, None),
]


@pytest.mark.parametrize("dtype, tolerance", [("f4", 1e-6), ("f8", 1e-14)])
@pytest.mark.parametrize("shape", [(2, 3, 7, 7), (3, 9, 8), (1, 2, 16, 12)], ids=str)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_gradient_of_average_pooling(torch, window, shape, dtype, tolerance):
    kernel, stride, padding, ceil, include, divisor = window
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape).astype(dtype)
    leaf = torch.from_numpy(x).requires_grad_()
    y = torch.nn.functional.avg_pool2d(
        leaf, kernel, stride, padding, ceil, include, divisor
    )
    g = rng.standard_normal(y.shape).astype(dtype)
    y.backward(torch.from_numpy(g))
    expected = pooling_gradient(x, g.astype("f8"), *window)
    np.testing.assert_allclose(leaf.grad.numpy(), expected, 0, 20 * tolerance)


def test_a_plane_of_one_window(torch):
    leaf = torch.arange(3 * 49.0).view(1, 3, 7, 7).requires_grad_()
    torch.nn.functional.avg_pool2d(leaf, 7, 1).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.full((1, 3, 7, 7), 1 / 49), 1e-6)
