# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Views of more elements than any memory has: they are made, looked at and cut, and
whatever would compute or copy them says why it does not."""

import pytest

MOST = 2**58  # float32: 2**60 bytes


@pytest.mark.parametrize("size", [2**44, 2**45, 2**50, MOST])
def test_they_are_made_and_cut(torch, size):
    x = torch.full((1,), 3.0).expand(size)
    assert x.numel() == size and x.stride() == (0,)
    assert x.nbytes == 4 * size
    assert x[-1].item() == 3
    assert x[5 : size - 5 : 7].shape[0] == -(-(size - 10) // 7)
    assert x.view(2, size // 2)[1, :4].sum().item() == 12
    assert x[None].expand(1, size).t().shape == (size, 1)
    assert x.narrow(0, size - 3, 3).tolist() == [3.0, 3.0, 3.0]
    assert x.unfold(0, 4, size // 4).shape == (4, 4)
    assert x.as_strided((5,), (0,)).sum().item() == 15
    assert "3., 3., 3.,  ..., 3., 3., 3." in repr(x)


def test_windows_that_overlap(torch):
    x = torch.arange(2.0**10).unfold(0, 2**9, 1)
    assert x.expand(2**30, *x.shape).numel() == 2**30 * 513 * 512


def test_more_is_refused(torch):
    with pytest.raises(RuntimeError, match=rf"a view has at most {2**60} bytes"):
        torch.ones(1).expand(2 * MOST)
    with pytest.raises(RuntimeError, match="a view has at most"):
        torch.ones(1).expand(2**31, 2**31, 2**31)
    # What has no elements has strides that are products of its sizes.
    with pytest.raises(RuntimeError, match="a view has at most"):
        torch.ones(0).view(0, 2**50)


MAKERS = {
    "x + 1": lambda t, x: x + 1,
    "x > 1": lambda t, x: x > 1,
    "x.to(float64)": lambda t, x: x.to(t.float64),
    "clone": lambda t, x: x.clone(),
    "contiguous": lambda t, x: x.contiguous(),
    "cat": lambda t, x: t.cat([x, x]),
    "stack": lambda t, x: t.stack([x] * 3),
    "sort": lambda t, x: x.sort()[0],
    "index": lambda t, x: x[x > 0],
    "cumsum": lambda t, x: x.cumsum(0),
    "matmul": lambda t, x: x[:, None] @ x[None],
    "repeat": lambda t, x: x.repeat(2),
    "fill_": lambda t, x: x.fill_(1.0),
    "add_": lambda t, x: x.add_(1.0),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_has_memory_of_its_own(torch, name):
    x = torch.ones(1).expand(2**50)
    with pytest.raises(RuntimeError, match=rf"at most {2**46} bytes.*Got"):
        MAKERS[name](torch, x)
    assert x[0].item() == 1


SMALL_RESULTS = {
    "sum": lambda t, x: x.sum(),
    "amax": lambda t, x: x.amax(0),
    "median": lambda t, x: x.median(),
    "topk": lambda t, x: x.topk(3)[0],
    "dot": lambda t, x: t.dot(x, x),
    "index_select": lambda t, x: x.index_select(0, t.tensor([1])),
    "gather": lambda t, x: x.gather(0, t.tensor([1])),
    "unique": lambda t, x: t.unique(x),
    "nonzero": lambda t, x: x.nonzero(),
    "histc": lambda t, x: t.histc(x, 4, 0, 2),
}


@pytest.mark.parametrize("name", SMALL_RESULTS)
def test_what_would_walk_all_of_them(torch, name):
    x = torch.ones(1).expand(2**50)
    with pytest.raises(
        RuntimeError,
        match=rf"an op computes with at most {2**46} bytes, and f32\[{2**50}\] has "
        rf"{2**52}; only views may. Use a smaller expanded size",
    ):
        SMALL_RESULTS[name](torch, x)
    assert x[0].item() == 1


def test_the_array_is_of_the_one_element(torch):
    x = torch.ones(1).expand(2**50)
    assert x.numpy().shape == (2**50,) and x.numpy()[-1] == 1
    y = torch.ones(2**18).expand(2**30, 2**18)  # more than is mirrored over gRPC
    try:
        assert y.numpy().shape == (2**30, 2**18)
    except RuntimeError as error:
        assert f"at most {2**46} bytes" in str(error)


def test_autograd(torch):
    x = torch.ones(1, requires_grad=True)
    (x.expand(2**50)[:8] * 2).sum()  # its gradient would be as large
    y = x.expand(2**44)[3] * 2
    with pytest.raises(RuntimeError, match="out of memory|at most"):
        y.backward()
        x.grad.item()
    assert (x * 3).item() == 3
