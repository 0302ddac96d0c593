# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a program writes into an array from numpy() is the tensor's, or refused."""

import numpy as np
import pytest


def test_small_arrays_are_one_with_their_tensors(torch):
    x = torch.zeros(4, 3)
    a = x.numpy()
    a[1] = 5
    assert x[1].tolist() == [5, 5, 5]
    x.add_(1)
    assert a[0].tolist() == [1, 1, 1] and a[1].tolist() == [6, 6, 6]
    rows = x.t()[1:].numpy()  # another array of the same memory
    rows[0, 0] = 40
    assert a[0, 1] == 40 and x[0, 1].item() == 40
    del a
    rows[1, 3] = 41
    assert x[3, 2].item() == 41


def test_arrays_of_views_and_types(torch):
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex64):
        x = torch.zeros(6, dtype=dtype)
        a = x[2:5].numpy()
        a[1] = 1
        assert x.sum().item() == 1 and x[3].item() == 1
    b = np.asarray(x)
    b[0] = 1
    assert x[0].item() == 1
    assert torch.zeros(0).numpy().shape == (0,)
    assert torch.zeros(()).numpy().shape == ()


def test_a_detached_parameter(torch):
    w = torch.nn.Parameter(torch.ones(3))
    a = w.detach().numpy()
    a *= 2
    (w * w).sum().backward()
    assert w.grad.tolist() == [4, 4, 4]
    torch.optim.SGD([w], lr=0.25).step()
    assert a.tolist() == [1, 1, 1]


def test_large_arrays_are_no_copies_that_forget(torch, transport):
    x = torch.zeros(100_000)
    for array in (x.numpy(), np.asarray(x)):
        try:
            array[0] = 1
        except ValueError as error:
            assert "read-only" in str(error)
            assert transport == "grpc"
        else:
            assert x[0].item() == 1
            assert transport == "shm"


def test_an_array_keeps_no_tensor(torch):
    x = torch.ones(3)
    a = x.numpy()
    del x
    a[0] = 2
    assert a.tolist() == [2, 1, 1]


@pytest.mark.parametrize("size", [1, 1_000, 1_000_000, 5_000_000])
def test_from_numpy_and_its_array_are_one_at_any_size(torch, size):
    array = np.zeros(size, np.float32)
    x = torch.from_numpy(array)
    array += 1
    assert x.sum().item() == size
    x.add_(1)
    assert array.min() == array.max() == 2
    array[size // 2] = 5  # a part is brought
    assert x[size // 2].item() == 5 and x.sum().item() == 2 * size + 3
    again = x.numpy()
    again[0] = 7
    assert array[0] == 7 and x[0].item() == 7
    as_well = torch.as_tensor(array)
    x.mul_(0)
    assert array.max() == 0 and as_well.max().item() == 0


@pytest.mark.parametrize("size", [2, 1_000, 100_000])
def test_changes_that_cancel_each_other_are_seen(torch, size):
    array = np.ones(size)
    x = torch.from_numpy(array)
    array *= -1  # all signs
    assert x.sum().item() == -size
    array[:] = np.arange(size)
    assert x[size - 1].item() == size - 1
    array[[0, size - 1]] = array[[size - 1, 0]]  # two of them change places
    assert x[0].item() == size - 1 and x[size - 1].item() == 0


@pytest.mark.parametrize("size", [3, 600])
def test_from_numpy_of_arrays_that_lie_otherwise(torch, size):
    array = np.arange(4.0 * size).reshape(4, size)
    for view in (array.T, array[:, ::2], array[::2, 1:], array[::-1], array[1]):
        x = torch.from_numpy(view)
        assert x.numpy().tolist() == view.tolist()
        view[1] = -1
        assert x.numpy().tolist() == view.tolist()
        x[0] = 8
        x += 1
        assert view.tolist() == x.tolist()
    del view
    x = torch.from_numpy(array[:, 1:2])  # the array lives, its view does not
    array[:] = 3
    assert x.tolist() == [[3]] * 4


def test_what_nobody_can_write_is_a_copy(torch):
    array = np.ones(5)
    array.flags.writeable = False
    x = torch.from_numpy(array)
    x.zero_()
    assert array.tolist() == [1] * 5
    x = torch.from_numpy(np.ones(200_000))  # nobody else has it
    assert x.sum().item() == 200_000
    y = torch.tensor(a := np.ones(3))
    a[0] = 2
    assert y.tolist() == [1, 1, 1]
