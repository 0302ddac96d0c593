# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a program writes into an array from numpy() is the tensor's, or refused."""

import numpy as np


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
