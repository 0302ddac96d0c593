# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shape functions: what is a view, what changes in place, bad arguments."""

import numpy as np
import pytest


def test_views_share_memory(torch):
    x = torch.zeros(4, 4)
    x.diagonal().fill_(1)
    assert x.tolist() == torch.eye(4).tolist()
    x.unfold(0, 2, 2)[0, :, 1] = 5
    assert x[:2].tolist() == [[1, 0, 0, 0], [5, 5, 5, 5]]
    assert x.unfold(1, 3, 1).shape == torch.Size([4, 2, 3])


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x.repeat(3, 1),
        lambda t, x: x.repeat(1, 1),
        lambda t, x: x.tile(2, 1, 1),
        lambda t, x: x.repeat_interleave(2, 0),
        lambda t, x: x.repeat_interleave(1, 1),
        lambda t, x: x.roll(0, 0),
        lambda t, x: x.roll((0, 3), (0, 1)),
        lambda t, x: t.nn.functional.pad(x, (0, 0), mode="circular"),
        lambda t, x: t.nn.functional.pad(x, (-1, 0), mode="replicate"),
    ],
)
def test_copies_have_memory_of_their_own(torch, call):
    x = torch.arange(3.0).view(1, 3)
    copy = call(torch, x)
    before = copy.tolist()
    assert copy.add_(1).sub_(1).tolist() == before  # no element of it twice
    copy.fill_(9)
    assert x.tolist() == [[0, 1, 2]]


def test_shapes_change_in_place(torch):
    x = torch.arange(6.0).view(1, 2, 3)
    other = x
    x.squeeze_().t_()
    assert other.shape == (3, 2) and other.tolist() == [[0, 3], [1, 4], [2, 5]]
    x.unsqueeze_(0).transpose_(1, 2).swapdims_(0, 1)
    assert x.shape == (2, 1, 3)
    x.as_strided_((2,), (1,))
    assert x.tolist() == [0, 1]
    leaf = torch.zeros(1, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.squeeze_()


@pytest.mark.parametrize(
    "shape, change",
    [
        ((2,), lambda x: x.t_()),
        ((), lambda x: x.t_()),
        ((2,), lambda x: x.squeeze_()),
        ((2,), lambda x: x.squeeze_(0)),
        ((2,), lambda x: x.transpose_(0, 0)),
        ((2,), lambda x: x.swapaxes_(0, -1)),
        ((2,), lambda x: x.swapdims_(0, 0)),
        ((2,), lambda x: x.as_strided_((2,), (1,))),
        ((2,), lambda x: x.resize_(2)),
        ((2,), lambda x: x.resize_as_(x)),
        ((2,), lambda x: x.detach_()),
        ((2,), lambda x: setattr(x, "data", x)),
        ((2,), lambda x: x.set_(x)),
    ],
)
def test_shapes_that_stay_as_they_are(torch, shape, change):
    """The view is the very object that is to become it."""
    x = torch.ones(shape)
    change(x)
    assert tuple(x.shape) == shape and x.sum().item() == x.numel()
    assert "1." in repr(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.hsplit(t.zeros(0), 2**46),
        lambda t, x: t.tensor_split(x, 2**40),
        lambda t, x: x.expand(2**40).unbind(),
        lambda t, x: x.expand(2**40).split(1),
        lambda t, x: x.expand(2**40).chunk(2**40),
        lambda t, x: next(iter(x.expand(2**40))),
        lambda t, x: t.combinations(x, 2**40, True),
        lambda t, x: t.tril_indices(2**38, 1),
        lambda t, x: t.triu_indices(1, 2**38),
        lambda t, x: t.mvlgamma(x, 2**40).tolist(),
    ],
)
def test_absurd_counts_are_errors_at_once(torch, call):
    with pytest.raises(RuntimeError):
        call(torch, torch.ones(1))


def test_absurd_counts_of_small_results(torch):
    assert torch.combinations(torch.ones(3), 2**40).shape == (0, 2**40)
    assert torch.polygamma(2**40, torch.tensor([0.5])).tolist() == [-np.inf]
    assert torch.polygamma(2**40 + 1, torch.tensor([0.5])).tolist() == [np.inf]
    lower = torch.tril_indices(10**9, 10**9, 2 - 10**9)
    assert lower.tolist() == [
        [10**9 - 2, 10**9 - 1, 10**9 - 1],
        [0, 0, 1],
    ]
    upper = torch.triu_indices(10**9, 10**9, 10**9 - 2)
    assert upper.tolist() == [[0, 0, 1], [10**9 - 2, 10**9 - 1, 10**9 - 1]]


@pytest.mark.parametrize("row, col", [(0, 2), (2, 0), (1, 4), (3, 2), (3, 3), (2, 5)])
def test_triangles(torch, row, col):
    for offset in (-(2**70), -4, -2, -1, 0, 1, 2, 4, 2**70):
        near = max(min(offset, 9), -9)
        lower = torch.tril_indices(row, col, offset)
        assert lower.tolist() == [list(i) for i in np.tril_indices(row, near, col)]
        upper = torch.triu_indices(row, col, offset)
        assert upper.tolist() == [list(i) for i in np.triu_indices(row, near, col)]


def test_complex_numbers_are_viewed_as_their_parts(torch):
    x = torch.tensor([[1 + 2j, 3 - 4j]])
    parts = x.view(torch.float32)
    assert parts.tolist() == [[1, 2, 3, -4]]
    parts.view(dtype=torch.complex64)[0, 0] = 5j
    assert x.view(torch.complex64)[0, 0].item() == 5j
    assert torch.zeros(0).view(torch.complex64).shape == (0,)
    for call, text in (
        (lambda: x.t().expand(2, 2).view(torch.float32), r"stride\(-1\) must be 1"),
        (lambda: x[0, 0].view(torch.float32), r"dim\(\) cannot be 0"),
        (lambda: torch.zeros(3).view(torch.complex64), "divisible by 2.*got 3"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_resize(torch):
    x = torch.arange(6.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 4)
    assert x.shape == (3, 4) and x[0].tolist() == [0, 1, 2, 3]
    assert x.resize_as_(torch.zeros(2)).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        x.resize_(-1)
    with pytest.raises(RuntimeError, match="require grad"):
        torch.zeros(2, requires_grad=True).resize_(1)


def test_repeat_interleave_errors(torch):
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="can not be negative"):
        x.repeat_interleave(torch.tensor([1, -1, 1]))
    with pytest.raises(RuntimeError, match="same size as input"):
        x.repeat_interleave(torch.tensor([1, 1]))
    with pytest.raises(RuntimeError, match="0-dim or 1-dim"):
        torch.repeat_interleave(torch.zeros(2))
    assert torch.repeat_interleave(torch.zeros(0, dtype=torch.int64)).shape == (0,)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda t, x: x.diagonal(0, 1, 1), RuntimeError, "cannot be identical 1, 1"),
        (lambda t, x: x.diagonal(0, 0, 2), IndexError, "out of range.*got 2"),
        (lambda t, x: x.unfold(0, 3, 1), RuntimeError, "is 2 but size is 3"),
        (lambda t, x: x.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
        (lambda t, x: t.diag(x[None]), RuntimeError, "vector expected, got 3D"),
        (lambda t, x: x.rot90(1, (0,)), RuntimeError, "dims = 1"),
        (lambda t, x: x.rot90(1, (0, 0)), RuntimeError, "to be different"),
        (lambda t, x: x.hsplit(2), RuntimeError, "size of the dimension 3 is not"),
        (lambda t, x: x.dsplit(1), RuntimeError, "at least 3 dimension.*2"),
        (lambda t, x: x.roll((1, 2), 0), RuntimeError, "shifts: 2, dims:1"),
        (lambda t, x: x.slice_scatter(x, 0, 1), RuntimeError, "src size"),
        (lambda t, x: x.select_scatter(x, 0, 1), RuntimeError, "src size"),
        (lambda t, x: x.diagonal_scatter(x), RuntimeError, "diagonal size = .2."),
        (lambda t, x: t.combinations(x), RuntimeError, r"1D vector.*\[2, 3\]"),
        (lambda t, x: t.cartesian_prod(x), RuntimeError, r"1D vector.*\[2, 3\]"),
        (lambda t, x: t.block_diag(x[None]), RuntimeError, "0 has 3 dimensions"),
        (lambda t, x: t.tril_indices(-1, 2), RuntimeError, "got -1"),
        (lambda t, x: x.tensor_split(0), RuntimeError, "larger than 0, got 0"),
    ],
)
def test_bad_arguments(torch, call, error, text):
    with pytest.raises(error, match=text):
        call(torch, torch.zeros(2, 3))


def test_split_names_its_argument_as_pytorch_does(torch):
    x = torch.arange(10)
    for parts in (x.split(split_size=[3, 7]), torch.split(x, split_size_or_sections=3)):
        assert torch.cat(parts, dim=0).tolist() == list(range(10))
    assert [len(p) for p in x.split(4, dim=-1)] == [4, 4, 2]


def test_keywords_are_pytorchs(torch):
    x = torch.arange(6).reshape(shape=(2, 3))
    assert torch.swapaxes(x, axis0=0, axis1=1).shape == (3, 2)
    assert x.swapdims(dim0=0, dim1=1).shape == (3, 2)
    assert x.repeat(repeats=(1, 2)).tolist() == [[0, 1, 2] * 2, [3, 4, 5] * 2]
    y = torch.zeros(100, dtype=torch.int64).random_(to=3)
    assert set(y.tolist()) == {0, 1, 2}
    y.random_(**{"from": 5, "to": 7})
    assert set(y.tolist()) == {5, 6}
    with pytest.raises(TypeError, match="unexpected keywords: .'until'"):
        y.random_(until=3)
