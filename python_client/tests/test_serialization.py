# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""save and load: what comes back, and what damaged or foreign files say."""

import io
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import holdfast
from holdfast import nn, optim
from holdfast.serialization import FormatError
from holdfast.serialization.checkpoint_pickler import CheckpointPickler

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8"]
DTYPES += ["uint8", "bool", "complex64", "complex128"]


def round_trip(value, tmp_path):
    path = tmp_path / "value.pt"
    holdfast.save(value, path)
    return holdfast.load(path)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (5, 7, 3)])
def test_tensors(dtype, shape, tmp_path):
    count = math.prod(shape)
    array = (np.arange(count) * 37 % 200).reshape(shape).astype(dtype)
    tensor = round_trip(holdfast.tensor(array), tmp_path)
    assert str(tensor.dtype).endswith(dtype) and tuple(tensor.shape) == shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert not tensor.requires_grad


def test_bfloat16_is_exact(tmp_path):
    tensor = holdfast.randn(33).bfloat16()
    loaded = round_trip([tensor, tensor[3:]], tmp_path)
    assert loaded[0].dtype is holdfast.bfloat16
    assert holdfast.equal(loaded[0], tensor) and holdfast.equal(loaded[1], tensor[3:])


def test_special_floats_are_exact(tmp_path):
    array = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], "float32")
    loaded = round_trip(holdfast.tensor(array), tmp_path)
    assert loaded.numpy().tobytes() == array.tobytes()


def test_views_are_saved_as_they_look(tmp_path):
    base = holdfast.arange(12.0).reshape(3, 4)
    for view in (base.t(), base[1:, ::2], base[0].expand(5, 4)):
        assert holdfast.equal(round_trip(view, tmp_path), view)


def test_nested_values(tmp_path):
    value = OrderedDict(
        none=None,
        flags=[True, False],
        ints=(0, -1, 1 << 80),
        floats={"a": 0.1, "b": -0.0},
        text="grüße \n",
        raw=b"\x00\xff",
        keys={1: "int", "1": "str", (1, 2): "tuple", None: 0, 2.5: 1, False: 2},
        sets=[{1, 2}, frozenset("ab")],
        empty=[{}, [], (), set()],
        complex=1 - 2j,
        size=holdfast.ones(2, 3).shape,
        dtype=holdfast.float32,
        device=holdfast.device("cpu"),
        tensors=[holdfast.ones(2), {"deep": (holdfast.zeros(1),)}],
    )
    loaded = round_trip(value, tmp_path)
    assert type(loaded) is OrderedDict and list(loaded) == list(value)
    tensors, expected = loaded.pop("tensors"), value.pop("tensors")
    assert loaded == value
    assert type(loaded["size"]) is holdfast.Size
    assert math.copysign(1, loaded["floats"]["b"]) == -1
    assert tensors[0].tolist() == expected[0].tolist()
    assert tensors[1]["deep"][0].tolist() == [0]


def test_nonfinite_numbers(tmp_path):
    loaded = round_trip([math.inf, -math.inf, math.nan, np.float32(0.5)], tmp_path)
    assert loaded[:2] == [math.inf, -math.inf] and math.isnan(loaded[2])
    assert loaded[3] == 0.5


def test_parameters_and_identity(tmp_path):
    weight = nn.Parameter(holdfast.ones(2))
    frozen = nn.Parameter(holdfast.ones(1), requires_grad=False)
    leaf = holdfast.ones(1, requires_grad=True)
    loaded = round_trip([weight, weight, frozen, leaf], tmp_path)
    assert isinstance(loaded[0], nn.Parameter) and loaded[0].requires_grad
    assert loaded[1] is loaded[0]
    assert isinstance(loaded[2], nn.Parameter) and not loaded[2].requires_grad
    assert type(loaded[3]) is holdfast.Tensor and loaded[3].requires_grad


def test_training_state(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(holdfast.randn(5, 3)).sum().backward()
        optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    loaded = round_trip(state, tmp_path)
    twin = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    twin.load_state_dict(loaded["model"])
    other = optim.Adam(twin.parameters())
    other.load_state_dict(loaded["optimizer"])
    x = holdfast.randn(5, 3)
    for one, two in ((model, optimizer), (twin, other)):
        two.zero_grad()
        one(x).sum().backward()
        two.step()
    for a, b in zip(model.parameters(), twin.parameters()):
        assert holdfast.equal(a, b)


def test_file_objects(tmp_path):
    buffer = io.BytesIO()
    holdfast.save({"x": holdfast.arange(3)}, buffer)
    buffer.seek(0)
    assert holdfast.load(buffer)["x"].tolist() == [0, 1, 2]

    class WriteOnly:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    sink = WriteOnly()
    holdfast.save([1, holdfast.ones(1)], sink)
    assert holdfast.load(io.BytesIO(sink.data))[0] == 1
    with open(tmp_path / "named", "wb") as file:
        holdfast.save(5, file)
    with open(tmp_path / "named", "rb") as file:
        assert holdfast.load(file, map_location="cpu", weights_only=True) == 5


def test_layout_of_the_file(tmp_path):
    path = tmp_path / "x.pt"
    holdfast.save([holdfast.arange(5), holdfast.ones(3)], path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = ["data.pkl", "byteorder", "data/0", "data/1", "version"]
        assert archive.namelist() == [f"archive/{name}" for name in names]
        for info in archive.infolist():
            start = info.header_offset + 30 + len(info.filename)
            start += int.from_bytes(content[info.header_offset + 28 :][:2], "little")
            assert start % 64 == 0
            assert content[start:][: info.file_size] == archive.read(info)
    holdfast.save([holdfast.arange(5), holdfast.ones(3)], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    holdfast.save([1], path)
    os.chmod(path, 0o640)
    with pytest.raises(pickle.PicklingError):
        holdfast.save([lambda: 0], path)
    assert holdfast.load(path) == [1]
    holdfast.save([2], path)
    assert holdfast.load(path) == [2]
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.pt"]
    with pytest.raises(FileNotFoundError):
        holdfast.save([1], tmp_path / "no" / "x")
    with pytest.raises(IsADirectoryError):
        holdfast.save([1], tmp_path)


def test_a_save_that_dies_leaves_the_old_file(tmp_path):
    """Killed in the middle of writing, as by a power cut."""
    path = tmp_path / "x.pt"
    holdfast.save([1], path)
    program = f"""
import os, holdfast
from holdfast.serialization import archive_writer
pieces = archive_writer.pieces
def dying(flat):
    yield from pieces(flat)
    os.kill(os.getpid(), 9)
archive_writer.pieces = dying
holdfast.save(holdfast.ones(1000), {str(path)!r})
"""
    status = subprocess.run([sys.executable, "-c", program]).returncode
    assert status == -signal.SIGKILL
    assert holdfast.load(path) == [1]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.pt"
    link.symlink_to(tmp_path / "real" / "x.pt")
    holdfast.save([1], link)
    assert link.is_symlink() and holdfast.load(tmp_path / "real" / "x.pt") == [1]


@pytest.mark.parametrize(
    "value,text",
    [([lambda: 0], "lambda"), ({"a": threading.Lock()}, "lock"), ((1, sys), "module")],
)
def test_what_cannot_be_saved(value, text, tmp_path):
    with pytest.raises((TypeError, pickle.PicklingError), match=text):
        holdfast.save(value, tmp_path / "x")
    assert not os.listdir(tmp_path)


def test_cycles_and_depth(tmp_path):
    cycle = [holdfast.ones(1)]
    cycle.append({"again": cycle})
    loaded = round_trip(cycle, tmp_path)
    assert loaded[1]["again"] is loaded
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested as deeply"):
        holdfast.save(deep, tmp_path / "y")


# ---- layout


def test_shared_memory_stays_shared(tmp_path):
    base = holdfast.arange(12.0).reshape(3, 4)
    weight = nn.Parameter(holdfast.ones(2))
    views = [base, base.t(), base[1], base[:, ::2], weight, weight.detach()]
    loaded = round_trip(views, tmp_path)
    for view, twin in zip(views, loaded):
        assert holdfast.equal(view, twin)
        assert twin.stride() == view.stride()
        assert twin.storage_offset() == view.storage_offset()
    loaded[2].fill_(-1)
    with holdfast.no_grad():
        loaded[4].add_(1)
    assert loaded[0][1].tolist() == [-1] * 4 and loaded[1][:, 1].tolist() == [-1] * 4
    assert loaded[5].tolist() == [2, 2]
    # Once in the file, however many look at it.
    path = tmp_path / "twice"
    big = holdfast.ones(100_000)
    holdfast.save([big, big.view(100, 1000), big[:10]], path)
    assert path.stat().st_size < 450_000


def test_views_can_be_written_and_trained(tmp_path):
    loaded = round_trip([holdfast.ones(4)[1:], holdfast.ones(2, 2).t()], tmp_path)
    for tensor in loaded:
        weight = holdfast.ones(1, requires_grad=True)
        tensor.mul_(weight)
        tensor.sum().backward()
        assert weight.grad.item() == tensor.numel()


def test_attributes_of_tensors(tmp_path):
    tensor, weight = holdfast.ones(2), nn.Parameter(holdfast.ones(1))
    tensor.note, weight.frozen = "kept", [1]
    loaded = round_trip([tensor, weight], tmp_path)
    assert loaded[0].note == "kept" and loaded[1].frozen == [1]
    assert type(loaded[1]) is nn.Parameter


def test_the_older_format_is_not_written(tmp_path):
    with pytest.warns(UserWarning, match="format since 1.6"):
        holdfast.save([1], tmp_path / "x", _use_new_zipfile_serialization=False)
    assert zipfile.is_zipfile(tmp_path / "x")


# ---- files that are not right


def test_every_truncation_is_an_error(tmp_path):
    path = tmp_path / "x.pt"
    holdfast.save({"x": holdfast.arange(20)}, path)
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(FormatError, match="x.pt"):
            holdfast.load(path)


def test_every_flipped_byte_is_an_error_or_harmless(tmp_path):
    path = tmp_path / "x.pt"
    holdfast.save({"x": holdfast.arange(4), "y": "text"}, path)
    content = bytearray(path.read_bytes())
    for position in range(0, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        try:
            loaded = holdfast.load(path)
        except (FormatError, NotImplementedError):
            continue
        assert loaded["x"].tolist() == [0, 1, 2, 3] and loaded["y"] == "text"


def test_foreign_files(tmp_path):
    path = tmp_path / "x"
    for content, found in (
        (pickle.dumps({"a": 1}), "a pickle"),
        (b"", "an empty file"),
        (b"<html>", "one that starts with b'<html>'"),
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=found):
            holdfast.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", b"")
    with pytest.raises(FormatError, match="some other zip archive"):
        holdfast.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"")
        archive.writestr("x/constants.pkl", b"")
    with pytest.raises(NotImplementedError, match="TorchScript"):
        holdfast.load(path)
    with pytest.raises(FileNotFoundError):
        holdfast.load(tmp_path / "missing")


def test_map_location(tmp_path):
    path = tmp_path / "x"
    holdfast.save(holdfast.ones(2), path)

    def keep(storage, location):
        assert location == "cpu" and not storage.is_cuda
        return storage

    for location in (
        "cpu",
        holdfast.device("cpu"),
        {"cuda:0": "cpu"},
        keep,
        lambda storage, location: None,
        lambda storage, location: storage.cpu(),
    ):
        assert holdfast.load(path, map_location=location).tolist() == [1, 1]
        assert holdfast.load(path, location, weights_only=True).tolist() == [1, 1]
    assert holdfast.load(path, mmap=True).tolist() == [1, 1]
    for location in ("cuda", {"cpu": "cuda:1"}, lambda storage, _: storage.cuda(1)):
        with pytest.raises(RuntimeError, match="holds tensors on 'cpu' only"):
            holdfast.load(path, map_location=location)
    with pytest.raises(TypeError, match="map_location must be"):
        holdfast.load(path, map_location=5)


def test_files_of_other_devices(tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointPickler, "location", staticmethod(lambda _: "cuda:1"))
    path = tmp_path / "x"
    holdfast.save(holdfast.ones(2), path)
    with pytest.raises(RuntimeError, match="on a CUDA device .* map_location='cpu'"):
        holdfast.load(path)
    for location in ("cpu", {"cuda:1": "cpu"}, lambda storage, _: storage.cpu()):
        assert holdfast.load(path, map_location=location).tolist() == [1, 1]


def test_progress_bars(tmp_path, monkeypatch, capsys):
    """On a terminal, for what takes long; nowhere else."""
    from holdfast.serialization import progress

    big = holdfast.ones(1 << 20)
    monkeypatch.setattr(progress, "_WORTH_SHOWING", 1 << 20)
    holdfast.save(big, tmp_path / "x")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = []
    tqdm = pytest.importorskip("tqdm")
    monkeypatch.setattr(tqdm.tqdm, "update", lambda self, n: shown.append(n))
    holdfast.save(big, tmp_path / "x")
    assert sum(shown) >= big.nbytes
    shown.clear()
    holdfast.load(tmp_path / "x")
    assert sum(shown) == big.nbytes
