# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""x[...] and x[...] = value, against NumPy."""

import numpy as np
import pytest

ARRAY = np.arange(60).reshape(3, 4, 5)
BASIC = [
    0,
    -1,
    np.int64(1),
    slice(1, 3),
    slice(None, None, 2),
    slice(-2, None),
    slice(5, 9),
    slice(2, 1),
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (slice(None), slice(1, 4, 2), -1),
    Ellipsis,
    (Ellipsis, 0),
    (0, Ellipsis),
    (slice(0, 2), Ellipsis, slice(1, 3)),
    None,
    (None, 0, None),
    (Ellipsis, None),
    (slice(None), None, slice(None), 2),
    (),
]


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic(torch, key):
    result = torch.tensor(ARRAY)[key]
    expected = ARRAY[key]
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_assignment(torch, key):
    x, array = torch.tensor(ARRAY), ARRAY.copy()
    x[key] = -1
    array[key] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    value = np.full(array[key].shape, 7)
    x[key] = torch.tensor(value)
    array[key] = value
    np.testing.assert_array_equal(x.numpy(), array)


def test_basic_indices_are_views(torch):
    x = torch.zeros(3, 4)
    x[1:, ::2] += 1
    x[0] = torch.arange(4.0)
    row = x[2]
    row.mul_(5)
    assert x.tolist() == [[0.0, 1.0, 2.0, 3.0], [1.0, 0, 1.0, 0], [5.0, 0, 5.0, 0]]


INDEX = [
    [0, 2],
    [-1, 0, -3],
    np.array([[0, 1], [2, 2]]),
    (slice(None), [3, 0]),
    (slice(None), slice(None), np.array([[0], [4]])),
    (1, [0, 3]),
    ([0, 2], [1, 3]),
    ([0, 2], [1, 3], [0, -1]),
    (slice(1, 3), [0, 1], [2, 3]),
    (np.array([[0], [1]]), np.array([[1, 2]])),
    (Ellipsis, [0, 1]),
    ([1], slice(0, 2)),
    (np.array([], dtype=np.int64),),
]


@pytest.mark.parametrize("key", INDEX, ids=str)
def test_integer_tensors(torch, key):
    expected = ARRAY[key]
    x = torch.tensor(ARRAY)
    np.testing.assert_array_equal(x[key].numpy(), expected)
    keys = key if isinstance(key, tuple) else (key,)
    as_tensors = tuple(
        torch.tensor(k) if isinstance(k, (list, np.ndarray)) else k for k in keys
    )
    result = x[as_tensors]
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("key", INDEX, ids=str)
def test_integer_tensor_assignment(torch, key):
    x, array = torch.tensor(ARRAY), ARRAY.copy()
    x[key] = -1
    array[key] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    value = np.arange(array[key].size).reshape(array[key].shape)
    if len(np.unique(np.arange(60).reshape(3, 4, 5)[key])) == value.size:
        x[key] = torch.tensor(value)
        array[key] = value
        np.testing.assert_array_equal(x.numpy(), array)


def test_scalar_tensor_index(torch):
    x = torch.arange(5)
    assert x[torch.tensor(3)].item() == 3
    x[torch.tensor(1)] = 9
    assert x.tolist() == [0, 9, 2, 3, 4]


def test_masks(torch):
    x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]])
    x[x < 0] = 0
    assert x.tolist() == [[1.0, 0.0], [0.0, 4.0]]
    x[torch.tensor([True, False])] = 7
    assert x.tolist() == [[7.0, 7.0], [0.0, 4.0]]
    assert x[x > 0].tolist() == [7.0, 7.0, 4.0]
    with pytest.raises(IndexError, match="shape of the mask"):
        x[torch.tensor([True, False, True])] = 1


@pytest.mark.parametrize(
    "key, error, text",
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        (-4, IndexError, "out of bounds"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
        ("a", IndexError, "valid indices"),
        (1.5, IndexError, "valid indices"),
        ([1.5], IndexError, "long, int, byte or bool"),
        (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast"),
    ],
)
def test_errors(torch, key, error, text):
    x = torch.tensor(ARRAY)
    with pytest.raises(error, match=text):
        x[key]
    with pytest.raises(error, match=text):
        x[key] = 0
    np.testing.assert_array_equal(x.numpy(), ARRAY)


def test_a_scalar_has_no_entries(torch):
    loss = torch.tensor(3.0)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor.*item"):
        loss[0]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 0"):
        loss[:]


def test_index_past_the_end_is_an_error_of_the_read(torch):
    x = torch.arange(6).view(2, 3)
    for key in (torch.tensor([2]), (torch.tensor([0]), torch.tensor([3]))):
        y = x[key]
        with pytest.raises(IndexError, match="index"):
            y.tolist()
    assert x.sum().item() == 15


def test_gradients_pass_through_indexing(torch):
    x = torch.zeros(3, 4, requires_grad=True)
    (x[0] * 2 + x[[1, 1]].sum(0) + x[:, 1].sum()).sum().backward()
    assert x.grad.tolist() == [[2.0, 6.0, 2, 2], [2.0, 6.0, 2, 2], [0, 4.0, 0, 0]]


MIXED = [
    (0, slice(None), [0, 1]),
    ([0, 2], slice(None), [0, 1]),
    (slice(None), [0, 1], None, [1, 4]),
    (np.array([True, False, True]),),
    (np.array([True, False, True]), 1),
    (slice(None), np.array([True, False, True, True])),
    (np.array([True, False, True]), slice(None), [1, 2]),
    (ARRAY % 3 == 0,),
    (ARRAY[:, :, 0] % 3 == 0).nonzero(),
    (slice(None), ARRAY[0] % 3 == 0),
    (Ellipsis, ARRAY[0, 0] > 2),
    True,
    False,
    (None, True, [1]),
    ([True, False, True],),
    (np.uint8(1), Ellipsis),
    (range(2),),
    ([[0, 1], [2, -1]], [[0], [1]]),
    (-1, [-1, -2], -3),
]


@pytest.mark.parametrize("key", MIXED, ids=str)
def test_everything_at_once(torch, key):
    keys = key if isinstance(key, tuple) else (key,)
    # NumPy counts integers among index arrays; PyTorch selects them first.
    array, rest = ARRAY, keys
    if any(isinstance(k, int) and not isinstance(k, bool) for k in keys):
        axis, rest = 0, []
        for k in keys:
            if isinstance(k, int) and not isinstance(k, bool):
                array = np.take(array, k, axis)
            else:
                rest.append(k)
                axis += 1
        rest = tuple(rest)
    rest = tuple(list(k) if isinstance(k, range) else k for k in rest)
    expected = array[rest]
    result = torch.tensor(ARRAY)[key]
    np.testing.assert_array_equal(result.numpy(), expected)
    x = torch.tensor(ARRAY)
    x[key] = -5
    changed = ARRAY.copy()
    changed[ARRAY == -5] = 0
    target = np.arange(60).reshape(ARRAY.shape)
    places = target
    if rest is not keys:
        places = torch.tensor(target)[key].numpy()
    else:
        places = target[rest]
    changed.reshape(-1)[places.reshape(-1)] = -5
    np.testing.assert_array_equal(x.numpy(), changed)
    x = torch.tensor(ARRAY)
    x[key] += 100
    changed = ARRAY.copy()
    changed.reshape(-1)[np.unique(places)] += 100
    np.testing.assert_array_equal(x.numpy(), changed)
    x = torch.tensor(ARRAY)
    x[key] = torch.tensor(expected) * 2
    changed = ARRAY.copy()
    changed.reshape(-1)[places.reshape(-1)] *= 2
    np.testing.assert_array_equal(x.numpy(), changed)


def test_assignment_through_views(torch):
    x = torch.zeros(4, 6)
    x.t()[[1, 3], ::2] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[:, 1].tolist() == [1, 0, 2, 0] and x[:, 3].tolist() == [3, 0, 4, 0]
    y = torch.zeros(4, 6)[:, ::2]
    y[y == 0] = torch.arange(12.0)
    assert y.tolist() == torch.arange(12.0).view(4, 3).tolist()
    y[[0, 0, 1], [1, 1, 2]] += 1
    assert y[0, 1].item() == 2 and y[1, 2].item() == 6


def test_value_shapes(torch):
    x = torch.zeros(3, 4)
    x[[0, 1]] = torch.ones(1, 1, 4)
    x[x > 0] = 2
    with pytest.raises(RuntimeError, match=r"shape mismatch.*\[3\].*\[2, 4\]"):
        x[[0, 1]] = torch.ones(3)
    x[x > 0] = torch.ones(3)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x.tolist()
    assert x.sum().item() == 16


def test_functions(torch):
    x = torch.zeros(3, 4)
    x.index_put_((None, torch.tensor([1])), torch.tensor(2.0))
    assert x[:, 1].tolist() == [2, 2, 2]
    x.index_put_((torch.tensor([0, 0]),), torch.tensor(1.0), accumulate=True)
    assert x[0].tolist() == [2, 4, 2, 2]
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x.index_put_((torch.tensor([0]),), torch.tensor(1))
    with pytest.raises(IndexError, match="at least one index"):
        x.index_put_((None,), torch.tensor(1.0))
    x.t().put_(torch.tensor([0, -1]), torch.tensor([7.0, 8.0]))
    assert x[0, 0].item() == 7 and x[2, 3].item() == 8
    with pytest.raises(RuntimeError, match="same number of elements"):
        x.put_(torch.tensor([0]), torch.tensor([7.0, 8.0]))
    y = torch.take(x, torch.tensor([12]))
    with pytest.raises(IndexError, match="out of bounds"):
        y.tolist()
    with pytest.raises(RuntimeError, match="either sum, prod, mean, amax or amin"):
        x.scatter_reduce(0, torch.tensor([[0]]), x, "max")
    with pytest.raises(IndexError, match="same slice shapes"):
        x.index_copy(0, torch.tensor([0]), torch.zeros(2, 4))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.index_fill(2, torch.tensor([0]), 1)


def test_a_bad_index_leaves_the_tensor_as_it_was(torch):
    x = torch.zeros(70000)
    index = torch.arange(70000)
    index[69999] = 70000
    x[index] = 1
    with pytest.raises(IndexError, match="index 70000 is out of bounds"):
        x.tolist()
    assert x.sum().item() == 0


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64"])
def test_reduce_integers(torch, dtype):
    index = torch.zeros(300, dtype=torch.int64)
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    src = torch.full((300,), 3, dtype=getattr(torch, dtype))
    total = 900 % 256 if dtype == "uint8" else 900
    assert x.scatter_reduce(0, index, src, "sum").tolist() == [total, 0]
    assert x.scatter_reduce(0, index, src, "amax").tolist() == [3, 0]
    low = x.scatter_reduce(0, index, src, "amin", include_self=False).tolist()
    assert low == [3, 0]
    if dtype != "uint8":
        mean = x.scatter_reduce(0, index, src, "mean", include_self=False).tolist()
        assert mean == [3, 0]


@pytest.mark.parametrize("shape", [(1000, 64), (3, 70000), (70000,)])
def test_many(torch, shape):
    rng = np.random.default_rng(1)
    array = rng.standard_normal(shape)
    index = rng.integers(-shape[-1], shape[-1], 50000)
    x = torch.from_numpy(array)
    i = torch.from_numpy(index)
    np.testing.assert_array_equal(x[..., i].numpy(), array[..., index])
    if len(shape) == 2:
        rows = rng.integers(0, shape[0], 50000)
        r = torch.from_numpy(rows)
        np.testing.assert_array_equal(x[r, i].numpy(), array[rows, index])
        np.testing.assert_array_equal(x[r[:999]].numpy(), array[rows[:999]])
        total, expected = torch.from_numpy(array.copy()), array.copy()
        total.index_put_((r, i), torch.tensor(1.0, dtype=torch.float64), True)
        np.add.at(expected, (rows, index), 1.0)
        np.testing.assert_allclose(total.numpy(), expected)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
@pytest.mark.parametrize("shapes", [((), (1,)), ((1,), ()), ((), ()), ((1,), (2,))])
def test_scatter_reduce_of_scalars_has_gradients(torch, reduce, shapes):
    """A scalar counts as a vector of one element, in every argument."""
    x_shape, s_shape = shapes
    for index_shape in ((), (1,)):
        x = torch.full(x_shape, 3.0, requires_grad=True)
        src = torch.full(s_shape, 5.0, requires_grad=True)
        index = torch.zeros(index_shape, dtype=torch.int64)
        y = torch.scatter_reduce(x, 0, index, src, reduce)
        (g,) = torch.autograd.grad(y.sum(), src, create_graph=True)
        expected = {"sum": 1, "mean": 0.5, "prod": 3, "amax": 1, "amin": 0}[reduce]
        rest = [0.0] * (src.numel() - 1)
        assert g.shape == src.shape
        assert g.flatten().tolist() == [expected, *rest]
        if reduce != "sum":
            g.sum().backward()
