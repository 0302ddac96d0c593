# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays and tensors over one memory (shared memory), or copies (gRPC)."""

import gc
import time

import numpy as np
import pytest


def test_numpy_shares_memory(torch):
    x = torch.arange(6.0).view(2, 3)
    array = x.numpy()
    x += 1
    array[0, 0] = 50
    np.testing.assert_array_equal(array, [[50, 2, 3], [4, 5, 6]])
    assert x.tolist() == [[50.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_views_and_strides(torch):
    x = torch.arange(24).view(2, 3, 4)
    np.testing.assert_array_equal(
        x.transpose(0, 2)[1:, ::2].numpy(),
        np.arange(24).reshape(2, 3, 4).transpose(2, 1, 0)[1:, ::2],
    )
    assert x.expand(2, 2, 3, 4).numpy().shape == (2, 2, 3, 4)
    assert torch.zeros(0, 3).numpy().shape == (0, 3)
    assert torch.tensor(2.5).numpy().shape == ()


def test_array_outlives_the_tensor(torch):
    array = (torch.ones(1000) * 3).numpy()
    gc.collect()
    torch.zeros(1000).sum().item()
    assert array.sum() == 3000
    assert array.flags.writeable


def test_from_numpy_of_own_memory_shares(torch, transport):
    x = torch.arange(12.0).view(3, 4)
    array = x.numpy()
    y = torch.from_numpy(array[1:, ::2])
    assert y.tolist() == [[4.0, 6.0], [8.0, 10.0]]
    y.zero_()
    assert x[1:].tolist() == [[0.0, 5.0, 0.0, 7.0], [0.0, 9.0, 0.0, 11.0]]


def test_empty_numpy(torch, transport):
    array = torch.empty_numpy((3, 4), torch.float64)
    array[:] = 7
    x = torch.from_numpy(array)
    assert x.dtype is torch.float64
    array[0] = 1
    assert x.sum().item() == 60
    assert torch.empty_numpy(5, np.int64).dtype == np.int64


def test_from_numpy_takes_arrays(torch):
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        torch.from_numpy([1, 2])


def test_subclasses_of_ndarray_are_arrays(torch, tmp_path):
    np.arange(6, dtype=np.uint16).tofile(tmp_path / "tokens")
    tokens = np.memmap(tmp_path / "tokens", dtype=np.uint16, mode="r")
    assert type(tokens[1:4].astype(np.int64)) is np.memmap
    assert torch.from_numpy(tokens[1:4].astype(np.int64)).tolist() == [1, 2, 3]
    matrix = np.matrix([[1.0, 2.0]])
    for make in (torch.from_numpy, torch.tensor, torch.as_tensor):
        assert make(matrix).tolist() == [[1.0, 2.0]]
    assert (torch.ones(2) + tokens[:2].astype(np.float32)).tolist() == [1.0, 2.0]


def test_requires_grad(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1.0, 1.0]
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_numpy_functions_take_tensors(torch):
    x = torch.tensor([1.0, 4.0])
    assert np.asarray(x).tolist() == [1.0, 4.0]
    assert np.sqrt(x.numpy()).tolist() == [1.0, 2.0]
    root = np.sqrt(x)
    assert isinstance(root, torch.Tensor) and root.tolist() == [1.0, 2.0]
    assert np.array(x, dtype=np.float64).dtype == np.float64
    assert memoryview(x._buffer()).format == "f"


def test_exported_memory_is_synchronous(torch, transport):
    """What numpy sees is what the ops before wrote, without any wait of ours."""
    if transport != "shm":
        pytest.skip("over gRPC numpy() is a copy")
    x = torch.zeros(200_000)
    array = x.numpy()
    for i in range(1, 50):
        x += 1
        assert array[0] == array[-1] == i


def test_numpy_takes_constant_time(torch, transport):
    if transport != "shm":
        pytest.skip("over gRPC numpy() is a copy")
    small, large = torch.zeros(1000), torch.zeros(50_000_000)
    large.numpy()

    def best(x):
        times = []
        for _ in range(30):
            x.sum().item()
            start = time.perf_counter()
            x.numpy()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(large) < 10 * best(small) + 1e-4


def test_large_upload_and_download(torch):
    array = np.random.default_rng(0).random((1024, 1024))
    np.testing.assert_array_equal(torch.tensor(array).numpy(), array)
    np.testing.assert_array_equal(np.array(torch.tensor(array).tolist()), array)
