# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sorting, selecting, searching: results by name, NaN, and what is refused."""

import numpy as np
import pytest


def test_results_have_names(torch):
    x = torch.tensor([3.0, 1.0, 2.0])
    for result in (torch.sort(x), x.topk(2), x.kthvalue(2), x.median(0), x.mode()):
        values, indices = result
        assert result.values is values and result.indices is indices
        assert torch.equal(x[indices], values)


def test_sort_takes_pytorchs_arguments(torch):
    x = torch.tensor([[3, 1], [2, 4]])
    assert torch.sort(x, stable=True, dim=0, descending=True)[0].tolist() == [
        [3, 4],
        [2, 1],
    ]
    assert x.argsort(descending=True).tolist() == [[0, 1], [1, 0]]
    assert torch.msort(x).tolist() == [[2, 1], [3, 4]]


def test_nan_is_the_largest(torch):
    x = torch.tensor([1.0, float("nan"), float("inf")])
    assert torch.argsort(x).tolist() == [0, 2, 1]
    assert torch.argsort(x, descending=True).tolist() == [1, 2, 0]
    assert x.topk(1).indices.tolist() == [1]
    assert x.median(0).indices.item() == 1
    assert x.nanmedian(0).indices.item() == 0


@pytest.mark.parametrize("n", [10, 1000, 200000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_large_sorts(torch, n, dtype):
    """One long row is sorted by all threads."""
    rng = np.random.default_rng(n)
    if dtype.startswith("float"):
        a = rng.normal(size=n).astype(dtype)
    else:
        a = rng.integers(0, 250, n).astype(dtype)
    for descending in (False, True):
        values, indices = torch.from_numpy(a).sort(descending=descending)
        key = a.astype(np.float64) * (-1 if descending else 1)
        order = np.argsort(key, kind="stable")
        assert np.array_equal(indices.numpy(), order)
        assert np.array_equal(values.numpy(), a[order])
        top = torch.from_numpy(a).topk(min(n, 20), largest=descending)
        assert np.array_equal(top.indices.numpy(), order[:20])
    assert torch.from_numpy(a).median().item() == np.sort(a)[(n - 1) // 2]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda t, x: x.sort(2), IndexError, "Dimension out of range"),
        (lambda t, x: x.topk(5, 1), RuntimeError, "selected index k out of range"),
        (lambda t, x: x.topk(-1), RuntimeError, "selected index k out of range"),
        (lambda t, x: x.kthvalue(4), RuntimeError, "out of range for dimension 1"),
        (lambda t, x: x.kthvalue(0), RuntimeError, "out of range for dimension 1"),
        (lambda t, x: x[:0].median(0), IndexError, "non-zero size"),
        (lambda t, x: x[:0].mode(0), IndexError, "non-zero size"),
        (
            lambda t, x: t.searchsorted(x, t.zeros(3, 1)),
            RuntimeError,
            "first N-1 dimensions",
        ),
        (
            lambda t, x: t.searchsorted(x[0], t.zeros(3).long()),
            RuntimeError,
            "same dtype",
        ),
        (lambda t, x: t.searchsorted(x[0], x, side="up"), RuntimeError, "side can"),
        (lambda t, x: t.bucketize(x, x), RuntimeError, "must be 1 dimension"),
        (lambda t, x: x.bool().topk(1), RuntimeError, "Bool"),
    ],
)
def test_refused(torch, call, error, text):
    with pytest.raises(error, match=text):
        call(torch, torch.zeros(2, 3))


def test_sizes_of_unique_are_known_late(torch):
    x = torch.tensor([3, 1, 3, 2])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert torch.equal(values[inverse], x)
    assert values.shape == counts.shape == (3,)
    assert (counts * values).tolist() == [1, 2, 6]


def test_bincount_refuses(torch):
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.tensor([1, -1]).bincount().tolist()
    with pytest.raises(RuntimeError, match="1-d"):
        torch.tensor([[1]]).bincount()
    with pytest.raises(RuntimeError, match="same length"):
        torch.tensor([1]).bincount(torch.ones(2))
    with pytest.raises(RuntimeError, match="minlength"):
        torch.tensor([1]).bincount(minlength=-1)


def test_histograms_refuse(torch):
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        x.histc(0)
    with pytest.raises(RuntimeError, match="max must be larger"):
        x.histc(3, 2, 1)
    with pytest.raises(RuntimeError, match="not finite"):
        x.histc(3, 0, float("inf"))
    with pytest.raises(RuntimeError, match="not implemented"):
        x.long().histc()
