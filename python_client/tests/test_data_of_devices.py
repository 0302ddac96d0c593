# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A daemon with several GPUs (server/fake_device): data goes straight to the one that
the program names, and comes from the one where it is."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import holdfast
from holdfast import safetensors

LARGE = 1 << 19  # elements: bytes that go beside the command


@pytest.fixture
def torch(gpu_session):
    holdfast.set_default_session(gpu_session)
    yield holdfast
    holdfast.set_default_session(gpu_session)


@pytest.fixture
def alone(torch, two_gpus, transport):
    """A session of its own, whose memory nobody else has."""
    with holdfast.connect(two_gpus.address(transport)) as session:
        yield session


@pytest.mark.parametrize("number", [0, 1])
def test_data_comes_and_goes_without_another_gpu(torch, alone, tmp_path, number):
    device, other = f"cuda:{number}", 1 - number
    small = np.arange(7, dtype=np.float32)
    large = np.arange(LARGE, dtype=np.float32)
    kept = []

    def check(x, array):
        assert str(x.device) == device and x.dtype is torch.float32
        kept.append(x)
        np.testing.assert_array_equal(x.numpy(), array)
        assert x.tolist() == array.tolist() and x[-1].item() == array[-1]

    for array in (small, large):
        check(torch.tensor(array, device=device), array)
        check(torch.as_tensor(array, device=device), array)
        check(torch.tensor(memoryview(array), device=device), array)
        check(torch.tensor(array.astype(np.int64), device=device).float(), array)
        turned = array[::-1].copy()[::-1]
        check(torch.tensor(turned, device=device, dtype=torch.float64).float(), array)
        check(kept[0].new_tensor(array.tolist()), array)
        check(pickle.loads(pickle.dumps(kept[-1])), array)
        file = io.BytesIO()
        torch.save({"x": kept[-1], "none": torch.empty(0, device=device)}, file)
        for where in (None, device, {device: device}, lambda s, _: s.cuda(number)):
            file.seek(0)
            loaded = torch.load(file, map_location=where)
            check(loaded["x"], array)
            assert str(loaded["none"].device) == device
        path = tmp_path / "x.safetensors"
        safetensors.save_file({"x": kept[-1]}, path)
        check(safetensors.load_file(path, device=device)["x"], array)
        with safetensors.safe_open(path, "pt", device=device) as opened:
            check(opened.get_tensor("x"), array)
    torch.set_default_device(device)
    try:
        check(torch.tensor(large), large)
        check(torch.Tensor(small.tolist()), small)
    finally:
        torch.set_default_device("cpu")
    assert torch.cuda.max_memory_allocated(other) == 0
    assert torch.cuda.memory_allocated(number) >= sum(x.nbytes for x in kept)


def test_reads_of_another_gpu_see_what_was_there(torch, alone):
    x = torch.tensor(np.zeros(LARGE, np.float32), device="cuda:1")
    seen = []
    for _ in range(20):
        x += 1
        seen.append(x.numpy())
        x *= 2
        assert x[::3].numpy()[5] == seen[-1][0] * 2
    for i, array in enumerate(seen):
        assert (array == 2.0 ** (i + 1) - 1).all()
    array = np.ones(LARGE, np.float32)
    moved = torch.as_tensor(array, device="cuda:1")
    array[:] = 2
    small = np.ones(3, np.float32)
    moved_small = torch.as_tensor(small, device="cuda:0")
    small[:] = 2
    moved_small += 1
    assert moved.sum().item() == LARGE and moved_small.tolist() == [2, 2, 2]
    assert small.tolist() == [2, 2, 2]


def test_uploads_from_threads_go_where_each_says(torch, alone):
    arrays = [np.full(LARGE, i, np.float32) for i in range(3)]

    def upload(which):
        device = ("cpu", "cuda:0", "cuda:1")[which]
        for _ in range(15):
            x = torch.tensor(arrays[which], device=device)
            assert str(x.device) == device and x[0].item() == which

    with ThreadPoolExecutor(3) as pool:
        for result in [pool.submit(upload, i) for i in range(3)]:
            result.result()
    assert (torch.ones(2) * 1j).is_cpu  # a number that nobody said a device for
    torch.set_default_device("cuda:1")
    try:
        assert torch.from_numpy(arrays[0]).is_cpu  # as in PyTorch
    finally:
        torch.set_default_device("cpu")


def test_a_refused_upload_names_its_device(torch, alone):
    with pytest.raises(RuntimeError, match="has 2 GPUs, counted from 0. Got cuda:2"):
        torch.tensor([1.0], device="cuda:2")
    torch.tensor([1.0], device="cuda:1").sum().item()


def test_a_session_may_end_with_copies_under_way(torch, two_gpus, transport):
    arrays = [np.full(LARGE, i, np.float32) for i in range(4)]
    for _ in range(10):
        with holdfast.connect(two_gpus.address(transport)):
            moved = [torch.tensor(a, device="cuda:1") for a in arrays]
            moved[0].sum()
    with holdfast.connect(two_gpus.address(transport)):
        assert torch.tensor(arrays[3], device="cuda:1").sum().item() == 3 * LARGE


def test_arrays_keep_nothing_on_a_gpu(torch, alone):
    """A program that gathers predictions as arrays has the GPU's memory for itself."""
    x = torch.tensor(np.arange(LARGE, dtype=np.float32), device="cuda:1")
    held = torch.cuda.memory_allocated(1)
    arrays = [(x + i).cpu().numpy() for i in range(5)] + [x.numpy(force=True)]
    arrays += [(x.reshape(2, -1).t() * 2).numpy(force=True)]
    torch.cuda.synchronize(1)  # what goes is told with the next command
    assert torch.cuda.memory_allocated(1) == held
    assert torch.cuda.memory_allocated(0) == 0
    for i, array in enumerate(arrays[:5]):
        np.testing.assert_array_equal(array, np.arange(LARGE) + i)
    np.testing.assert_array_equal(arrays[5], np.arange(LARGE))
    np.testing.assert_array_equal(arrays[6].T.reshape(-1), np.arange(LARGE) * 2)
