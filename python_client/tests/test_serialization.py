# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""save and load: what comes back, and what damaged or foreign files say."""

import io
import json
import math
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import holdfast
from holdfast import nn, optim
from holdfast.serialization import FormatError

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]


def round_trip(value, tmp_path):
    path = tmp_path / "value.holdfast"
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
    path = tmp_path / "x.holdfast"
    holdfast.save([holdfast.arange(5), holdfast.ones(3)], path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["data.json", "tensors/0", "tensors/1"]
        for info in archive.infolist()[1:]:
            start = info.header_offset + 30 + len(info.filename)
            start += int.from_bytes(content[info.header_offset + 28 :][:2], "little")
            assert start % 64 == 0
            assert content[start:][: info.file_size] == archive.read(info)
    holdfast.save([holdfast.arange(5), holdfast.ones(3)], tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == content


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.holdfast"
    holdfast.save([1], path)
    os.chmod(path, 0o640)
    with pytest.raises(TypeError):
        holdfast.save([object()], path)
    assert holdfast.load(path) == [1]
    holdfast.save([2], path)
    assert holdfast.load(path) == [2]
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.holdfast"]
    with pytest.raises(FileNotFoundError):
        holdfast.save([1], tmp_path / "no" / "x")


class Custom(list):
    pass


@pytest.mark.parametrize(
    "value,text",
    [
        ({"a": [1, object()]}, r"builtins.object at obj\['a'\]\[1\]"),
        (nn.ReLU(), "Save its state_dict"),
        ({"a": np.ones(2)}, "from_numpy"),
        ([print], "builtin_function_or_method at obj"),
        (Custom(), "Custom"),
        ({object(): 1}, "at a key of obj"),
    ],
)
def test_what_cannot_be_saved(value, text, tmp_path):
    with pytest.raises(TypeError, match=text):
        holdfast.save(value, tmp_path / "x")
    assert not os.listdir(tmp_path)


def test_cycles_and_depth(tmp_path):
    cycle = []
    cycle.append({"again": cycle})
    with pytest.raises(ValueError, match="must not hold itself"):
        holdfast.save(cycle, tmp_path / "x")
    deep = []
    for _ in range(150):
        deep = [deep]
    with pytest.raises(ValueError, match="levels of nesting"):
        holdfast.save(deep, tmp_path / "x")


# ---- files that are not right


def test_every_truncation_is_an_error(tmp_path):
    path = tmp_path / "x.holdfast"
    holdfast.save({"x": holdfast.arange(20)}, path)
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(FormatError, match="x.holdfast"):
            holdfast.load(path)


def test_every_flipped_byte_is_an_error_or_harmless(tmp_path):
    path = tmp_path / "x.holdfast"
    holdfast.save({"x": holdfast.arange(4), "y": "text"}, path)
    content = bytearray(path.read_bytes())
    for position in range(0, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(damaged)
        try:
            loaded = holdfast.load(path)
        except FormatError:
            continue
        assert loaded["x"].tolist() == [0, 1, 2, 3] and loaded["y"] == "text"


def test_foreign_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FormatError, match="must be a file that holdfast.save wrote"):
        holdfast.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"")
    with pytest.raises(FormatError, match="a PyTorch checkpoint"):
        holdfast.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme", b"")
    with pytest.raises(FormatError, match="some other zip archive"):
        holdfast.load(path)
    with pytest.raises(FileNotFoundError):
        holdfast.load(tmp_path / "missing")


def archive_of(path, header, tensors=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.json", json.dumps(header))
        for i, data in enumerate(tensors):
            archive.writestr(f"tensors/{i}", data)


def entry(**changes):
    node = {"tensor": 0, "dtype": "float32", "shape": [2], "requires_grad": False}
    return {**node, **changes}


@pytest.mark.parametrize(
    "root",
    [
        {"call": ["os.system", "true"]},
        {"dict": [[{"list": []}, 1]]},
        {"dict": 5},
        {"list": "text"},
        {"dtype": "device"},
        {"bytes": "???"},
        {"float": "huge"},
        {},
        [1],
        entry(dtype="object"),
        entry(dtype="__import__"),
        entry(shape=[3]),
        entry(shape=[-2]),
        entry(shape=[1 << 62, 4]),
        entry(shape=["2"]),
        entry(shape=[True, 2]),
        entry(shape=None),
        entry(tensor="../data.json"),
        entry(tensor=1),
        {"tensor": 0},
        {"complex": [1]},
    ],
    ids=str,
)
def test_forged_structures(root, tmp_path):
    path = tmp_path / "x"
    archive_of(path, {"format": "holdfast", "version": 1, "root": root}, [bytes(8)])
    with pytest.raises(FormatError, match="damaged"):
        holdfast.load(path)


def test_forged_nesting_and_headers(tmp_path):
    path = tmp_path / "x"
    deep = 0
    for _ in range(200):
        deep = {"list": [deep]}
    archive_of(path, {"format": "holdfast", "version": 1, "root": deep})
    with pytest.raises(FormatError):
        holdfast.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.json", "[" * 100000)
    with pytest.raises(FormatError):
        holdfast.load(path)
    archive_of(path, {"format": "holdfast", "version": 2, "root": 1})
    with pytest.raises(FormatError, match="format version 2; this holdfast reads 1"):
        holdfast.load(path)
    archive_of(path, {"format": "other", "version": 1, "root": 1})
    with pytest.raises(FormatError, match="another archive"):
        holdfast.load(path)


def test_map_location(tmp_path):
    path = tmp_path / "x"
    holdfast.save(holdfast.ones(2), path)
    assert holdfast.load(path, map_location=holdfast.device("cpu")).tolist() == [1, 1]
    assert holdfast.load(path, map_location={"cuda:0": "cpu"}).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="map_location=function"):
        holdfast.load(path, map_location=lambda storage, location: storage)
