# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DLPack and __cuda_array_interface__ of tensors on a GPU: memory that the daemon and
this process see both. On the fake device, whose memory is files: what CUDA's driver
does for GPUs is in tests/gpu/run_sharing.py."""

import gc

import numpy as np
import pytest
from gpu_consumer import Producer, View

import holdfast
from holdfast import device_arrays
from holdfast.daemon import Daemon

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
).split()


@pytest.fixture(scope="module")
def daemons():
    env = {"HOLDFAST_FAKE_NAME": "cuda"}
    with Daemon("--device=fake:0,1", env=env) as first:
        with Daemon("--device=fake:0,1", env=env) as second:
            yield first, second


@pytest.fixture
def torch(daemons):
    with holdfast.connect(daemons[0].shm_address):
        holdfast.manual_seed(0)
        yield holdfast


@pytest.fixture
def other(daemons, torch):
    """A session of another daemon, whose tensors are a library's arrays here."""
    mine = holdfast._C.default_session()
    with holdfast.connect(daemons[1].shm_address, default=False) as session:

        def make(values, **options):
            holdfast.set_default_session(session)
            try:
                return torch.tensor(values, **options)
            finally:
                holdfast.set_default_session(mine)

        yield make


@pytest.fixture
def no_host(monkeypatch):
    """The elements must not go by way of the host."""

    def refuse(*_):
        raise AssertionError("through the host")

    monkeypatch.setattr(device_arrays, "_through_host", refuse)


class Array:
    """Not a Tensor of ours: what from_dlpack() sees of one of another session."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__dlpack_device__ = tensor.__dlpack_device__

    def __dlpack__(self, stream=None, max_version=None):
        return self.tensor.__dlpack__(stream=stream, max_version=max_version)


# ---- out


def test_both_sides_see_the_same_bytes(torch):
    x = torch.arange(24.0, device="cuda").reshape(4, 6)
    view = View(x.__dlpack__())
    assert view.device == x.__dlpack_device__() == (2, 0)
    assert view.array.tolist() == x.tolist()
    x.add_(100)
    torch.cuda.synchronize()
    assert view.array[0, 0] == 100 and view.array[3, 5] == 123
    view.array[1] = 7
    assert x[1].tolist() == [7] * 6
    assert (x[1] * 2).sum().item() == 84
    view.close()


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_view(torch, dtype, device):
    x = (torch.arange(24) % 7).reshape(2, 3, 4).to(getattr(torch, dtype)).to(device)
    for t in (
        x,
        x.permute(2, 0, 1),
        x[1:, ::2],
        x[0, 0, 1],
        x[:0],
        x[0].expand(5, 3, 4),
    ):
        view = View(t.__dlpack__(max_version=(1, 0)))
        assert view.device == (2, int(device[-1]))
        assert view.strides == t.stride()
        assert view.array.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(view.array, t.cpu().numpy())
        assert (view.data is None) == (t.numel() == 0)
        view.close()


def test_bfloat16(torch):
    x = torch.tensor([1.5, -2.0], device="cuda").bfloat16()
    view = View(x.__dlpack__())
    assert (view.message.array.code, view.message.array.bits) == (4, 16)
    assert view.array.tolist() == x.view(torch.int16).tolist()
    view.close()


def test_versions_and_arguments(torch):
    x = torch.ones(3, device="cuda")
    old = View(x.__dlpack__(stream=1, max_version=(0, 8)))
    new = View(x.__dlpack__(stream=2, max_version=(1, 3)))
    assert type(old.message).__name__ == "Managed"
    assert (new.message.major, new.message.flags) == (1, 0)
    assert old.data == new.data
    copied = View(x.__dlpack__(copy=True))
    assert copied.data != old.data and copied.array.tolist() == [1, 1, 1]
    for view in (old, new, copied):
        view.close()
    host = np.from_dlpack(_OnHost(x))
    assert host.tolist() == [1, 1, 1]
    assert torch.ones(2).__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream="one")
    with pytest.raises(BufferError, match="cannot be on"):
        x.__dlpack__(dl_device=(2, 7))
    with pytest.raises(BufferError, match="cannot be on"):
        torch.ones(2).__dlpack__(dl_device=(2, 0))


class _OnHost:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(dl_device=(1, 0))

    def __dlpack_device__(self):
        return 1, 0


def test_cuda_array_interface(torch):
    x = torch.arange(12.0, device="cuda").reshape(3, 4).t()
    told = x.__cuda_array_interface__
    view = View(x.__dlpack__())
    assert told == {
        "version": 3,
        "shape": (4, 3),
        "typestr": "<f4",
        "data": (view.data, False),
        "strides": (4, 16),
        "stream": None,
    }
    view.close()
    assert torch.ones(0, device="cuda").__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(torch.ones(1), "__cuda_array_interface__")
    assert not hasattr(
        torch.ones(1, device="cuda").bfloat16(), "__cuda_array_interface__"
    )
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(
            1, device="cuda", requires_grad=True
        ).__cuda_array_interface__  # noqa: B018


# ---- lifetime


def test_an_array_keeps_its_tensor(torch):
    before = torch.cuda.memory_allocated()
    x = torch.full((1000,), 5.0, device="cuda")
    view = View(x.__dlpack__())
    del x
    gc.collect()
    for _ in range(20):
        torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    assert view.array.tolist() == [5] * 1000
    assert torch.cuda.memory_allocated() > before
    view.close()
    assert torch.cuda.memory_allocated() == before


def test_a_capsule_that_nobody_takes(torch):
    before = torch.cuda.memory_allocated()
    capsule = torch.ones(1000, device="cuda").__dlpack__()
    assert torch.cuda.memory_allocated() > before
    del capsule
    gc.collect()
    assert torch.cuda.memory_allocated() == before


def test_empty_cache_leaves_what_is_exported(torch):
    kept = torch.ones(3 << 20, device="cuda")
    gone = torch.ones(3 << 20, device="cuda")
    view = View(kept.__dlpack__())
    del kept, gone
    view.close()
    reserved = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved()
    assert 12 << 20 <= left <= reserved - (12 << 20)
    again = torch.full((3 << 20,), 2.0, device="cuda")  # in the same segment
    assert torch.cuda.memory_reserved() == left
    view = View(again.__dlpack__())
    assert view.array[-1] == 2
    view.close()


def test_a_session_that_is_closed(daemons):
    with holdfast.connect(daemons[0].shm_address):
        x = holdfast.arange(1000.0, device="cuda")
        capsule, view = x.__dlpack__(), View(x.__dlpack__())
    view.array.sum()  # no crash; whether the values are still there is not promised
    view.close()
    with pytest.raises(RuntimeError, match="closed"):
        x.__dlpack__()
    del capsule, x


def test_a_daemon_that_dies(monkeypatch):
    monkeypatch.setenv("HOLDFAST_FAKE_NAME", "cuda")
    with Daemon("--device=fake") as daemon:
        session = holdfast.connect(daemon.shm_address, timeout=1)
        x = holdfast.arange(1000.0, device="cuda")
        view, capsule = View(x.__dlpack__()), x.__dlpack__()
        daemon.kill()
        assert view.array.sum() == 499500
        view.array[:] = 1
        with pytest.raises(holdfast.errors.DaemonUnavailableError):
            x.__dlpack__()
        view.close()
        del capsule, x
        session.close()


# ---- refusals


def test_grpc(daemons):
    with holdfast.connect(daemons[0].grpc_address):
        x = holdfast.ones(2, device="cuda")
        assert x.__dlpack_device__() == (2, 0)
        with pytest.raises(RuntimeError, match="Got a session over grpc.*Use .cpu"):
            x.__dlpack__()
        assert np.from_dlpack(x.cpu()).tolist() == [1, 1]


def test_memory_of_others(torch, daemons):
    torch.publish("w", torch.ones(2, device="cuda"))
    found = torch.lookup("w")  # on the first GPU, and "cpu" by name
    with pytest.raises(RuntimeError, match=r"clone\(\) it first"):
        holdfast._C.dlpack_capsule(found, False)
    view = View(found.cuda().__dlpack__())
    view.array[:] = 5
    assert torch.lookup("w").tolist() == [1, 1]
    view.close()
    with holdfast.connect(daemons[0].shm_address, default=False) as session:
        own = holdfast._C.default_session()
        holdfast.set_default_session(session)
        token = holdfast._C.share(torch.ones(4, device="cuda"), True)
        holdfast.set_default_session(own)
        theirs = holdfast._C.open_shared(token, torch.float32, (4,), (1,), 0, True, 1)
        with pytest.raises(RuntimeError, match=r"clone\(\) it first"):
            theirs.__dlpack__()
        assert theirs.tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="require gradient"):
        torch.ones(2, device="cuda", requires_grad=True).__dlpack__()


def test_a_failure_is_told(torch):
    bad = torch.ones(3, device="cuda")[torch.tensor([5], device="cuda")]
    with pytest.raises(IndexError, match="out of"):
        bad.__dlpack__()


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_what_is_written_from_outside_is_checked(torch, device):
    table = torch.arange(10.0, device=device)
    index = torch.tensor([1, 2], device=device)
    mask = torch.tensor([True, False], device=device)
    assert table[index].tolist() == [1, 2] and index[0].item() == 1
    view, mask_view = View(index.__dlpack__()), View(mask.__dlpack__())
    view.array[0] = 9
    assert index[0].item() == 9 and table[index].tolist() == [9, 2]
    view.array[1] = 1 << 40
    with pytest.raises(IndexError, match="out of"):
        table[index].tolist()
    mask_view.array[1] = True
    assert table[:2][mask].tolist() == [0, 1]
    view.close()
    mask_view.close()


# ---- in


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_from_another_process(torch, other, no_host, dtype, device):
    theirs = other(np.arange(24).reshape(2, 3, 4) % 7, device=device)
    theirs = theirs.to(getattr(torch, dtype))
    for t in (theirs, theirs.permute(2, 0, 1), theirs[1:, ::2], theirs[1, 2, 3]):
        mine = torch.from_dlpack(Array(t))
        assert str(mine.device) == device and mine.dtype is t.dtype
        assert mine.is_contiguous() and mine.tolist() == t.tolist()
    mine = torch.from_dlpack(Array(theirs))
    before = mine.tolist()
    theirs.zero_()  # a copy
    assert mine.tolist() == before
    assert (mine + 1).device == mine.device


def test_capsules_and_cuda_arrays(torch, other, no_host):
    theirs = other([[1.0, 2.0], [3.0, 4.0]], device="cuda:1").t()
    for versions in (None, (1, 0)):
        capsule = theirs.__dlpack__(max_version=versions)
        assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [[1, 3], [2, 4]]
        with pytest.raises(ValueError, match="nobody took"):
            torch.from_dlpack(capsule)

    class Interface:
        __cuda_array_interface__ = theirs.__cuda_array_interface__

    mine = torch.from_dlpack(Interface())
    assert mine.tolist() == [[1, 3], [2, 4]] and str(mine.device) == "cuda:1"


def test_back_to_where_it_came_from(torch, no_host):
    x = torch.arange(6.0, device="cuda:1").reshape(2, 3)
    again = torch.from_dlpack(Array(x[:, 1:]))
    assert again.tolist() == [[1, 2], [4, 5]]
    again.zero_()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_cannot_be_shared_goes_through_the_host(torch):
    memory = np.arange(12.0, dtype="float32").reshape(3, 4)
    for array in (memory, memory.T, memory[::-1, ::2], memory[1:2, 3], memory[:0]):
        producer = Producer(array, ordinal=1)
        mine = torch.from_dlpack(producer)
        assert producer.closed and producer.stream == 1
        assert str(mine.device) == "cuda:1"
        np.testing.assert_array_equal(mine.cpu().numpy(), array)
    half = Producer(np.array([0x3F80, 0x4000], "int16"), code=4)
    assert torch.from_dlpack(half).tolist() == [1, 2]
    assert torch.from_dlpack(half).dtype is torch.bfloat16


def test_another_session_of_the_same_daemon(torch, daemons):
    """As CUDA does, the daemon opens no memory of its own process."""
    with holdfast.connect(daemons[0].shm_address, default=False) as session:
        own = holdfast._C.default_session()
        holdfast.set_default_session(session)
        theirs = torch.arange(3, device="cuda")
        holdfast.set_default_session(own)
        assert torch.from_dlpack(Array(theirs)).tolist() == [0, 1, 2]


def test_grpc_brings_through_the_host(daemons, other):
    theirs = other([1.0, 2.0], device="cuda:1")
    with holdfast.connect(daemons[0].grpc_address):
        mine = holdfast.from_dlpack(Array(theirs))
        assert mine.tolist() == [1, 2] and str(mine.device) == "cuda:1"


def test_bad_arrays(torch):
    with pytest.raises(BufferError, match="no such arrays.*of 24 bits"):
        producer = Producer(np.zeros(2, "int16"))
        producer.message.array.bits = 24
        torch.from_dlpack(producer)
    huge = Producer(np.zeros(2, "float32"))
    huge.message.array.rank = 65
    with pytest.raises(BufferError, match="65 dimensions"):
        torch.from_dlpack(huge)


def test_an_array_with_a_mask(torch):
    class Masked:
        __cuda_array_interface__ = {
            "shape": (3,),
            "typestr": "<f4",
            "data": (0, False),
            "mask": object(),
            "version": 3,
        }

    with pytest.raises(NotImplementedError, match=r"no mask.*\(3,\): fill"):
        torch.from_dlpack(Masked())


def test_a_daemon_on_the_cpu(daemon):
    with holdfast.connect(daemon.shm_address):
        if holdfast.cuda.is_available():
            pytest.skip("the suite's daemon has a GPU")
        with pytest.raises(RuntimeError, match="the daemon must have a GPU"):
            holdfast.from_dlpack(Producer(np.zeros(2, "float32")))
        x = holdfast.ones(2)
        assert x.__dlpack_device__() == (1, 0)
        assert np.from_dlpack(x).tolist() == [1, 1]
