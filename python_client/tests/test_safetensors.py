# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""safetensors files: what comes back, the bytes themselves, and forged ones."""

import io
import json
import struct

import pytest

import holdfast
from holdfast import nn, safetensors
from holdfast.serialization import FormatError

pytestmark = pytest.mark.usefixtures("torch")

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64"
).split()


def some(dtype, *shape):
    count = holdfast.Size(shape).numel()
    return (
        (holdfast.arange(count) * 37 % 100).reshape(shape).to(getattr(holdfast, dtype))
    )


def tensors():
    return {
        f"{dtype}.{i}": some(dtype, *shape)
        for dtype in DTYPES
        for i, shape in enumerate([(), (0, 3), (5,), (2, 3, 4)])
    }


def test_round_trip(tmp_path):
    path = tmp_path / "x.safetensors"
    expected = tensors()
    expected["strided"] = holdfast.arange(12.0).reshape(3, 4).t()
    safetensors.save_file(expected, path, metadata={"format": "pt", "who": "grüße"})
    for loaded in (safetensors.load_file(path), holdfast.load(path)):
        assert sorted(loaded) == sorted(expected)
        for name, tensor in expected.items():
            assert loaded[name].dtype is tensor.dtype
            assert loaded[name].shape == tensor.shape
            assert holdfast.equal(loaded[name], tensor)
    with safetensors.safe_open(path, framework="pt") as f:
        assert f.metadata() == {"format": "pt", "who": "grüße"}
        assert sorted(f.keys()) == sorted(expected)
        assert holdfast.equal(f.get_tensor("strided"), expected["strided"])
        with pytest.raises(KeyError):
            f.get_tensor("none")


def test_bytes_and_layout():
    data = safetensors.save({"b": holdfast.ones(2), "a": some("uint8", 3)})
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0
    assert json.loads(data[8 : 8 + size]) == {
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]},
    }
    assert data[8 + size :] == struct.pack("<ff", 1, 1) + bytes([0, 37, 74])
    loaded = safetensors.load(data)
    assert loaded["b"].tolist() == [1, 1] and loaded["a"].tolist() == [0, 37, 74]
    assert safetensors.load(safetensors.save({})) == {}


def test_a_model(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    safetensors.save_file(model.state_dict(), tmp_path / "m")
    twin = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    twin.load_state_dict(safetensors.load_file(tmp_path / "m"))
    assert all(
        map(holdfast.equal, model.state_dict().values(), twin.state_dict().values())
    )


def test_what_cannot_be_saved(tmp_path):
    base = holdfast.ones(4)
    for value, error in (
        ([base], TypeError),
        ({1: base}, TypeError),
        ({"a": 5}, TypeError),
        ({"a": some("complex128", 2)}, TypeError),
        ({"a": base, "b": base[1:]}, RuntimeError),
    ):
        with pytest.raises(error, match="save_file"):
            safetensors.save_file(value, tmp_path / "x")
    with pytest.raises(TypeError, match="metadata"):
        safetensors.save_file({"a": base}, tmp_path / "x", metadata={"a": 1})
    assert not list(tmp_path.iterdir())


def test_the_libraries_own_files(tmp_path):
    """What the safetensors package wrote is read, and the other way round."""
    numpy_side = pytest.importorskip("safetensors.numpy")
    expected = {k: v for k, v in tensors().items() if "bfloat" not in k}
    expected = {k: v for k, v in expected.items() if "complex" not in k}
    arrays = {name: tensor.numpy().copy() for name, tensor in expected.items()}
    numpy_side.save_file(arrays, tmp_path / "theirs")
    loaded = safetensors.load_file(tmp_path / "theirs")
    safetensors.save_file(expected, tmp_path / "ours")
    seen = numpy_side.load_file(tmp_path / "ours")
    for name, tensor in expected.items():
        assert holdfast.equal(loaded[name], tensor)
        assert (seen[name] == arrays[name]).all() and seen[name].dtype == arrays[
            name
        ].dtype


def forged(header, data=bytes(8)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), data_offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(data_offsets)}


@pytest.mark.parametrize(
    "header",
    [
        {"a": entry(shape=[3])},
        {"a": entry(shape=[-2])},
        {"a": entry(shape=[1 << 62, 4])},
        {"a": entry(shape=[2.0])},
        {"a": entry(shape=[True, 2])},
        {"a": entry(dtype="F8")},
        {"a": entry(dtype="__class__")},
        {"a": entry(data_offsets=[8, 0])},
        {"a": entry(data_offsets=[-8, 0])},
        {"a": entry(data_offsets=[0, 1 << 50], shape=[1 << 48])},
        {"a": entry(data_offsets=[0, 4], shape=[1])},
        {"a": entry(), "b": entry()},
        {"a": entry(data_offsets=[4, 8], shape=[1])},
        {"a": {"dtype": "F32"}},
        {"a": 5},
        {},
        [1],
        b"{",
        b"{" + b"[" * 100000,
        b'{"a":{},"a":{}}',
        b"{\xff}",
    ],
    ids=lambda header: str(header)[:50],
)
def test_forged_headers(header):
    with pytest.raises(FormatError, match="damaged"):
        safetensors.load(forged(header))


def test_lengths_that_are_lies(tmp_path):
    good = forged({"a": entry()})
    assert safetensors.load(good)["a"].tolist() == [0, 0]
    for bad in (b"", good[:7], good[:-1], good + b"x", good[:20]):
        with pytest.raises(FormatError, match="damaged"):
            safetensors.load(bad)
    for length in (0, 1, len(good), 1 << 40, (1 << 64) - 1):
        with pytest.raises(FormatError, match=f"header has {length} bytes"):
            safetensors.load(struct.pack("<Q", length) + good[8:])
    with pytest.raises(FormatError):
        holdfast.load(io.BytesIO(good[:-1]))
    with pytest.raises(RuntimeError, match="cpu"):
        (tmp_path / "x").write_bytes(good)
        safetensors.load_file(tmp_path / "x", device="cuda")


def test_save_by_that_name_writes_that_format(torch, tmp_path):
    path = tmp_path / "x.safetensors"
    torch.save({"a": torch.arange(3)}, path)
    assert torch.safetensors.load_file(path)["a"].tolist() == [0, 1, 2]
    assert torch.load(path)["a"].tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="no safetensors file.*a dict of tensors"):
        torch.save([torch.arange(3)], path)
    assert torch.load(path)[0].tolist() == [0, 1, 2]
