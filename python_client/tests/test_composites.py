# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions composed in Python, against NumPy."""

import math

import numpy as np
import pytest

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4)).astype(np.float32)
Y = RNG.standard_normal((3, 4)).astype(np.float32)
P = np.abs(X) + 0.5

# name, arguments (arrays become tensors), what NumPy says
CASES = [
    ("square", [X], X**2),
    ("trunc", [X * 3], np.trunc(X * 3)),
    ("fix", [X * 3], np.trunc(X * 3)),
    ("frac", [X * 3], X * 3 - np.trunc(X * 3)),
    ("fmod", [X * 3, 2.0], np.fmod(X * 3, 2)),
    ("exp2", [X], np.exp2(X)),
    ("log2", [P], np.log2(P)),
    ("log10", [P], np.log10(P)),
    ("tan", [X], np.tan(X)),
    ("sinh", [X], np.sinh(X)),
    ("cosh", [X], np.cosh(X)),
    ("erfc", [X], np.vectorize(math.erfc)(X)),
    ("logaddexp", [X, Y], np.logaddexp(X, Y)),
    ("deg2rad", [X], np.deg2rad(X)),
    ("rad2deg", [X], np.rad2deg(X)),
    ("hypot", [X, Y], np.hypot(X, Y)),
    ("rsub", [X, Y], Y - X),
    ("subtract", [X, Y], X - Y),
    ("multiply", [X, Y], X * Y),
    ("true_divide", [X, P], X / P),
    ("absolute", [X], np.abs(X)),
    ("negative", [X], -X),
    ("addcmul", [X, Y, P], X + Y * P),
    ("addcdiv", [X, Y, P], X + Y / P),
    ("lerp", [X, Y, 0.25], X + 0.25 * (Y - X)),
    ("clamp_min", [X, 0.1], np.maximum(X, 0.1)),
    ("clamp_max", [X, 0.1], np.minimum(X, 0.1)),
    ("clip", [X, -0.5, 0.5], np.clip(X, -0.5, 0.5)),
    ("greater", [X, Y], X > Y),
    ("not_equal", [X, Y], X != Y),
    ("isinf", [np.array([1, np.inf, -np.inf, np.nan])], [False, True, True, False]),
    ("mm", [X, Y.T], X @ Y.T),
    ("mv", [X, Y[0]], X @ Y[0]),
    ("dot", [X[0], Y[0]], X[0] @ Y[0]),
    ("outer", [X[0], Y[1]], np.outer(X[0], Y[1])),
    ("bmm", [X[None], Y.T[None]], (X @ Y.T)[None]),
    ("addmm", [Y[:, :3], X, Y.T], Y[:, :3] + X @ Y.T),
    ("addmv", [X[:, 0], X, Y[0]], X[:, 0] + X @ Y[0]),
    ("flatten", [X], X.ravel()),
    ("reshape", [X, (2, 6)], X.reshape(2, 6)),
    ("ravel", [X.T], X.T.ravel()),
    ("t", [X], X.T),
    ("movedim", [X[None], 0, 2], np.moveaxis(X[None], 0, 2)),
    ("swapaxes", [X, 0, 1], X.T),
    ("narrow", [X, 1, 1, 2], X[:, 1:3]),
    ("tile", [X, (2, 1)], np.tile(X, (2, 1))),
    ("roll", [X, 1, 0], np.roll(X, 1, 0)),
    ("roll", [X, 3], np.roll(X, 3)),
    ("flipud", [X], np.flipud(X)),
    ("fliplr", [X], np.fliplr(X)),
    ("repeat_interleave", [X, 2, 1], np.repeat(X, 2, 1)),
    ("broadcast_to", [X[0], (2, 4)], np.broadcast_to(X[0], (2, 4))),
    ("unflatten", [X, 1, (2, 2)], X.reshape(3, 2, 2)),
    ("max", [X], X.max()),
    ("min", [X], X.min()),
    ("max", [X, Y], np.maximum(X, Y)),
    ("var", [X], X.var(ddof=1)),
    ("var", [X, 1], X.var(1, ddof=1)),
    ("std", [X, 0], X.std(0, ddof=1)),
    ("std", [X, (0, 1)], X.std(ddof=1)),
    ("std", [X, False], X.std()),
    ("norm", [X], np.linalg.norm(X)),
    ("norm", [X, 1, 1], np.abs(X).sum(1)),
    ("norm", [X, math.inf], np.abs(X).max()),
    ("norm", [X, 3], (np.abs(X) ** 3).sum() ** (1 / 3)),
    ("logsumexp", [X * 100, 1], np.log(np.exp(np.float64(X) * 100).sum(1))),
    ("count_nonzero", [X > 0], (X > 0).sum()),
    ("nansum", [np.array([1.0, np.nan, 2.0])], 3.0),
    ("nanmean", [np.array([1.0, np.nan, 3.0])], 2.0),
    ("take", [X, np.array([[0, 11], [5, 5]])], X.ravel()[[[0, 11], [5, 5]]]),
    ("nan_to_num", [np.array([np.nan, np.inf, 1.0])], [0.0, np.finfo("d").max, 1.0]),
]


@pytest.mark.parametrize(
    "name, arguments, expected", CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_against_numpy(torch, name, arguments, expected):
    def convert(a):
        return torch.tensor(a) if isinstance(a, np.ndarray) else a

    arguments = [convert(a) for a in arguments]
    results = [getattr(torch, name)(*arguments)]
    if hasattr(torch.Tensor, name):
        results.append(getattr(arguments[0], name)(*arguments[1:]))
    for result in results:
        assert tuple(result.shape) == np.shape(expected)
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-5, atol=1e-6)


def test_max_and_min_along_a_dimension(torch):
    x = torch.tensor(X)
    for name, values, indices in (
        ("max", X.max(1), X.argmax(1)),
        ("min", X.min(1), X.argmin(1)),
    ):
        result = getattr(torch, name)(x, 1)
        np.testing.assert_array_equal(result.values.numpy(), values)
        np.testing.assert_array_equal(result.indices.numpy(), indices)
        v, i = getattr(x, name)(dim=-1, keepdim=True)
        assert v.shape == i.shape == (3, 1)
    assert torch.tensor(3.0).max(0).values.item() == 3.0


def test_splitting_and_joining(torch):
    x = torch.arange(10)
    assert [p.tolist() for p in x.split(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [p.numel() for p in torch.split(x, [1, 2, 7])] == [1, 2, 7]
    assert [p.numel() for p in x.chunk(3)] == [4, 4, 2]
    assert [p.numel() for p in x.tensor_split(3)] == [4, 3, 3]
    a, b = torch.ones(2), torch.zeros(2)
    assert torch.stack([a, b]).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert torch.stack((a, b), dim=-1).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert torch.cat([a, b], dim=0).shape == torch.concat([a, b]).shape == (4,)
    assert torch.hstack([a, b]).shape == (4,)
    assert torch.vstack([a, b]).shape == (2, 2)
    assert [t.tolist() for t in torch.stack([a, b]).unbind(1)] == [[1.0, 0.0]] * 2
    assert torch.tensor([[1, 2]]).repeat(2, 2).tolist() == [[1, 2, 1, 2]] * 2
    assert torch.tensor([1, 2]).repeat(2, 1).tolist() == [[1, 2], [1, 2]]
    with pytest.raises(RuntimeError, match="equal size"):
        torch.stack([a, torch.ones(3)])
    with pytest.raises(RuntimeError, match="sum exactly to 10"):
        x.split([1, 2])


def test_comparison_functions(torch):
    a = torch.tensor([1.0, 2.0, float("nan")])
    assert not torch.allclose(a, a)
    assert torch.allclose(a, a, equal_nan=True)
    assert torch.isclose(a, a + 1e-7).tolist() == [True, True, False]
    assert torch.allclose(torch.tensor([1, 2]), torch.tensor([1, 2]))
    assert torch.equal(torch.ones(2), torch.ones(2))
    assert not torch.equal(torch.ones(2), torch.ones(3))
    assert torch.isclose(torch.tensor(math.inf), torch.tensor(math.inf)).item()
    with pytest.raises(RuntimeError, match="did not match"):
        torch.allclose(torch.ones(1), torch.ones(1, dtype=torch.float64))


def test_where_and_masked_fill(torch):
    x = torch.tensor(X)
    assert torch.equal(torch.where(x > 0, x, 0.0), x.relu())
    assert torch.equal(x.where(x > 0, 0.0), x.relu())
    assert torch.equal(x.masked_fill(x < 0, 0.0), x.relu())
    y = x.clone()
    assert y.masked_fill_(x < 0, 0) is y
    assert torch.equal(y, x.relu())
    assert torch.equal(x[torch.where(x > 0)], x[x > 0])
    with pytest.raises(RuntimeError, match="BoolTensor"):
        x.masked_fill(x, 0.0)


def test_scatter_forms(torch):
    index = torch.tensor([[0, 1, 2, 0]])
    ones = torch.ones(1, 4)
    zeros = torch.zeros(3, 4)
    expected = np.zeros((3, 4))
    expected[[0, 1, 2, 0], range(4)] = 1
    for result in (
        zeros.scatter(0, index, ones),
        zeros.scatter(0, index, 1.0),
        zeros.scatter(0, index, value=1.0),
        zeros.scatter(0, index, ones, reduce="add"),
        zeros.scatter_add(0, index, ones),
    ):
        np.testing.assert_array_equal(result.numpy(), expected)
    x = torch.zeros(3, 2)
    x.index_add_(0, torch.tensor([1, 1]), torch.ones(2, 2), alpha=2)
    x.index_fill_(0, torch.tensor([0]), 9.0)
    x.index_copy_(0, torch.tensor([2]), torch.full((1, 2), 5.0))
    assert x.tolist() == [[9.0, 9.0], [4.0, 4.0], [5.0, 5.0]]


def test_dtype_conversions(torch):
    x = torch.tensor([1.5, 0.0])
    assert x.long().tolist() == [1, 0]
    assert x.bool().tolist() == [True, False]
    assert x.double().dtype is torch.float64
    assert x.to(torch.int32).dtype is torch.int32
    assert x.to("cpu") is x
    assert x.to("cpu", torch.float64).dtype is torch.float64
    assert x.to(torch.tensor([1])).dtype is torch.int64
    assert x.to(dtype=torch.float32) is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.type() == "holdfast.FloatTensor"
    assert x.type(torch.int64).dtype is torch.int64
    assert x.cpu() is x
    with pytest.raises(RuntimeError, match="cuda"):
        x.cuda()


def test_properties(torch):
    x = torch.zeros(2, 3, 4).transpose(0, 2)
    assert x.shape == x.size() == (4, 3, 2)
    assert isinstance(x.shape, torch.Size)
    assert x.shape.numel() == 24
    assert isinstance(x.shape[1:], torch.Size) and x.shape[-1] == 2
    assert repr(x.shape) == "holdfast.Size([4, 3, 2])"
    assert x.size(0) == x.size(dim=-3) == 4
    assert x.stride() == (1, 4, 12) and x.stride(1) == 4
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.numel() == x.nelement() == torch.numel(x) == 24
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 96
    assert not x.is_contiguous() and x.contiguous().is_contiguous()
    assert x[1].storage_offset() == 1
    assert x.T.shape == (2, 3, 4) and x.mT.shape == (4, 2, 3)
    assert x.device.type == "cpu" and not x.is_cuda
    assert x.is_floating_point() and not x.long().is_floating_point()
    assert torch.is_tensor(x) and not torch.is_tensor(1)
    assert repr(x.dtype) == "holdfast.float32" and x.dtype.itemsize == 4
    with pytest.raises(IndexError, match=r"expected to be in range of \[-3, 2\]"):
        x.size(3)


def test_stacked_tensors_may_be_written(torch):
    parts = [torch.full((2, 3), float(i), requires_grad=True) for i in range(3)]
    with torch.no_grad():
        apart = torch.stack(parts, 1)
    together = torch.stack(parts, 1)
    assert apart.shape == together.shape == (2, 3, 3) and apart.is_contiguous()
    scale = torch.tensor(2.0, requires_grad=True)
    for stacked in (apart, together):
        stacked.mul_(scale)
    (together.sum() + apart.sum()).backward()
    assert parts[1].grad.tolist() == [[2.0] * 3] * 2 and scale.grad.item() == 36
    assert torch.stack(parts, 2).tolist() == torch.stack(parts, -1).tolist()
    assert torch.stack(parts, 2)[1, 2].tolist() == [0.0, 1.0, 2.0]
