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
