# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reductions, scans and statistics: accuracy, types, and what is refused."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.view(2000, 5000),
        lambda x: x.view(5000, 2000).t(),
        lambda x: x.view(2000, 5000)[:, ::2],
    ],
)
def test_sum_of_many(torch, view):
    """The error of a long float32 sum stays below 1e-6."""
    a = np.random.default_rng(1).uniform(0, 1, 10_000_000).astype(np.float32)
    x = view(torch.from_numpy(a))
    exact = x.numpy().astype(np.float64)
    assert abs(x.sum().item() / exact.sum() - 1) < 1e-6
    assert abs(x.mean().item() / exact.mean() - 1) < 1e-6
    if x.dim() == 2:
        for dim in (0, 1):
            got = x.sum(dim).numpy()
            assert np.abs(got / exact.sum(dim) - 1).max() < 1e-6


def test_variance_far_from_zero(torch):
    a = (np.random.default_rng(2).normal(size=(300, 4000)) + 1e4).astype(np.float32)
    exact = a.astype(np.float64)
    for dim in (0, 1, (0, 1)):
        got = torch.from_numpy(a).var(dim).numpy()
        np.testing.assert_allclose(got, exact.var(dim, ddof=1), 1e-5)


def test_types_of_results(torch):
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert x.prod().dtype is torch.int64
    assert x.cumprod(0).dtype is torch.int64
    assert x.prod(dtype=torch.float32).item() == 6.0
    assert x.cummax(0).values.dtype is torch.int32
    assert torch.tensor([True, False]).prod().dtype is torch.int64


def test_gradients_at_a_root_of_zero(torch):
    """Where the derivative is infinite, PyTorch has 0."""
    for function in (
        lambda x: x.norm(),
        lambda x: x.norm(1),
        lambda x: x.norm(3),
        lambda x: (x + 2).std(),
    ):
        x = torch.zeros(3, requires_grad=True)
        function(x).backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda t, x: x.prod(2), IndexError, "Dimension out of range"),
        (lambda t, x: x.cumprod(-3), IndexError, "Dimension out of range"),
        (lambda t, x: x.long().var(), RuntimeError, "floating point"),
        (lambda t, x: x.long().norm(), RuntimeError, "floating point"),
        (lambda t, x: x[:, :0].norm(float("inf")), RuntimeError, "empty"),
        (lambda t, x: x.long().nanmean(), RuntimeError, "floating point"),
        (lambda t, x: x.long().logcumsumexp(0), RuntimeError, "Long"),
        (lambda t, x: x.quantile(1.5), RuntimeError, r"range \[0, 1\]"),
        (lambda t, x: x.quantile(x), RuntimeError, "scalar or 1D"),
        (lambda t, x: x[:0].quantile(0.5), RuntimeError, "non-empty"),
        (lambda t, x: x.quantile(0.5, 2), IndexError, "Dimension out of range"),
        (
            lambda t, x: x.quantile(0.5, interpolation="cubic"),
            RuntimeError,
            "interpolation must be one of",
        ),
        (lambda t, x: t.gradient(x[:1]), RuntimeError, "edge_order"),
        (lambda t, x: x.diff(-1), RuntimeError, "non-negative"),
        (lambda t, x: x[0].renorm(2, 0, 1.0), RuntimeError, "at least 2 dim"),
    ],
)
def test_refused(torch, call, error, text):
    with pytest.raises(error, match=text):
        call(torch, torch.zeros(2, 3))
