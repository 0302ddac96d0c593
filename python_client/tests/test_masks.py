# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Masks, and results whose sizes depend on data."""

import numpy as np
import pytest

RNG = np.random.default_rng(3)


def test_nothing_waits_until_the_shape_is_looked_at(torch):
    x = torch.arange(12.0).view(3, 4)
    y = x[x > 4]
    # Type and rank are known.
    assert y.dtype is torch.float32 and y.dim() == 1 and y.ndim == 1
    assert torch.nonzero(x).dim() == 2
    assert "?" not in repr(y)
    for look in (
        lambda t: t.shape[0],
        lambda t: t.size(0),
        len,
        lambda t: t.numel(),
        lambda t: len(t.tolist()),
        lambda t: len(t.numpy()),
        lambda t: t.stride()[0] * 7,
        lambda t: t.nbytes // 4,
        lambda t: (t + 1).numel(),
    ):
        assert look(x[x > 4]) == 7
    assert x[x > 4].is_contiguous()
    assert torch.nonzero(x > 10).tolist() == [[2, 3]]
    assert int(x[x > 10].sum()) == 11 and float(x[x > 10]) == 11.0
    assert bool(x[x == 0]) is False
    assert str(x[x > 100]) == str(torch.zeros(0))


def test_errors_surface_at_the_first_look_and_stay(torch):
    x = torch.arange(4.0)
    bad = x[torch.tensor([9])]  # fails on the server
    chosen = bad[bad > 0]
    for _ in range(2):
        with pytest.raises(IndexError):
            chosen.shape
    with pytest.raises(IndexError):
        chosen + 1
    assert x.sum().item() == 6


def test_kept_and_shared_between_threads(torch):
    import threading

    x = torch.arange(1000.0)
    y = x[x >= 10]
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(y.shape)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [torch.Size([990])] * 8


def test_gradients_of_pending_tensors(torch):
    x = torch.arange(6.0).requires_grad_()
    y = x[x > 2]
    (g,) = torch.autograd.grad(y, x, torch.ones(3))
    assert g.tolist() == [0, 0, 0, 1, 1, 1]
    z = torch.arange(6.0)[torch.arange(6) > 3].requires_grad_()
    (g,) = torch.autograd.grad((z * z).sum(), z)
    assert g.tolist() == [8, 10]
    w = torch.arange(6.0)[torch.arange(6) > 3]
    w.grad = torch.ones(4)[:2]
    assert w.grad.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.int64, np.float32])
@pytest.mark.parametrize(
    "shape", [(70001,), (300, 301), (7, 1, 900, 3), (0, 3), (5, 0)]
)
def test_nonzero_of_many(torch, dtype, shape):
    array = (RNG.integers(0, 3, shape) == 0).astype(dtype)
    got = torch.nonzero(torch.from_numpy(array)).numpy()
    np.testing.assert_array_equal(got, np.argwhere(array))
    parts = torch.nonzero(torch.from_numpy(array), as_tuple=True)
    for ours, theirs in zip(parts, np.nonzero(array)):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert len(torch.where(torch.from_numpy(array))) == len(shape)


@pytest.mark.parametrize("shape", [(70001,), (300, 301), (40, 7, 50)])
def test_select_of_many(torch, shape):
    array, mask = RNG.standard_normal(shape), RNG.random(shape) > 0.4
    x, m = torch.from_numpy(array), torch.from_numpy(mask)
    np.testing.assert_array_equal(x[m].numpy(), array[mask])
    axes = tuple(range(len(shape)))[::-1]
    np.testing.assert_array_equal(x.T[m.T].numpy(), array.transpose(axes)[mask.T])
    rows = RNG.random(shape[0]) > 0.5
    r = torch.from_numpy(rows)
    np.testing.assert_array_equal(x[r].numpy(), array[rows])
    np.testing.assert_array_equal(x[r][..., ::2].numpy(), array[rows][..., ::2])


def test_masked_scatter(torch):
    x = torch.zeros(2, 3)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    source = torch.arange(1.0, 7.0)
    assert x.masked_scatter(mask, source).tolist() == [[1, 0, 2], [0, 3, 0]]
    x.masked_scatter_(mask[1], source)
    assert x.tolist() == [[0, 1, 0], [0, 2, 0]]
    x.masked_scatter_(mask, source[:2])
    with pytest.raises(RuntimeError, match="Number of elements of source < number"):
        x.tolist()
    assert x.tolist() == [[0, 1, 0], [0, 2, 0]]


def test_bad_masks(torch):
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="expected BoolTensor"):
        x.masked_select(x)
    with pytest.raises(RuntimeError, match="bool|Bool"):
        x.masked_fill(x, 1)
    with pytest.raises(RuntimeError, match="0-dimensional value tensor"):
        x.masked_fill(x > 0, torch.ones(3))
    with pytest.raises(IndexError, match=r"\[2\] at index 0 does not match .*\[2, 3\]"):
        x[:, torch.tensor([True, False])]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, torch.ones(2, 3, dtype=torch.bool)]


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "int8", "int16", "complex64", "complex128"]
)
def test_every_type(torch, name):
    x = torch.tensor([1, 0, 2]).to(getattr(torch, name))
    mask = torch.tensor([True, False, True])
    assert torch.nonzero(x).tolist() == [[0], [2]]
    assert x[mask].tolist() == [1, 2] and x[[2, 0]].tolist() == [2, 1]
    x[mask] = 3
    x.index_put_((torch.tensor([1]),), x[:1], accumulate=True)
    assert x.tolist() == [3, 3, 3]
