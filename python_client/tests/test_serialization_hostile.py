# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Checkpoints that somebody forged: no code runs, nothing is exhausted, no crash."""

import io
import os
import pickle
import resource
import struct
import zipfile

import pytest

import holdfast
from holdfast import nn
from holdfast.serialization import FormatError, UnsafeError

pytestmark = pytest.mark.usefixtures("torch")

STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03"
    b"\x00\x00\x00cpu"
)


def archive(pickled, data=bytes(8), name="archive", **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as made:
        made.writestr(f"{name}/data.pkl", pickled)
        made.writestr(f"{name}/data/0", data)
        made.writestr(f"{name}/version", "3\n")
    buffer.seek(0)
    return buffer


def long(n):
    return b"\x8a\x08" + n.to_bytes(8, "little", signed=True)


def tensor_pickle(size, stride, offset=0, count=2, extra=b""):
    """The pickle of one float32 tensor with that layout."""
    numbers = lambda values: b"(" + b"".join(long(v) for v in values) + b"t"  # noqa
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("
        + STORAGE
        + long(count)
        + b"tQ"
        + long(offset)
        + numbers(size)
        + numbers(stride)
        + b"\x89ccollections\nOrderedDict\n)RtR."
    )


class Run:
    """A pickle that calls what it is given."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Victim(nn.Module):
    """A class of the program's that a file may make."""


ran = []


def note(*arguments):
    ran.append(arguments)


CALLS = {
    "os.system": Run(os.system, "touch /tmp/holdfast-was-here"),
    "eval": Run(eval, "1+1"),
    "exec": Run(exec, "pass"),
    "getattr": Run(getattr, "text", "upper"),
    "import": Run(__import__, "antigravity"),
    "open": Run(open, "/etc/passwd"),
    "own function": Run(note, 1),
    "holdfast.load": Run(holdfast.load, "/etc/passwd"),
    "holdfast.connect": Run(holdfast.connect, "1.2.3.4:5"),
    "a class of the program's": Run(Victim, 1),
    "nested": {"model": [Run(note)], "epoch": 1},
}


@pytest.mark.parametrize("weights_only", [None, True])
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_refused(name, weights_only):
    for protocol in range(0, 5):
        pickled = pickle.dumps(CALLS[name], protocol)
        with pytest.raises(UnsafeError, match="names|calls|makes"):
            holdfast.load(archive(pickled), weights_only=weights_only)
    assert not ran and not os.path.exists("/tmp/holdfast-was-here")


HAND_MADE = {
    # GLOBAL of a class, BUILD that would set its attributes.
    "patching a class": (
        b"\x80\x02ctorch.nn\nLinear\nN}X\x07\x00\x00\x00forwardI1\ns\x86b."
    ),
    "patching a function": (
        b"\x80\x02ctorch.nn.functional\nrelu\nN}X\x01\x00\x00\x00aI1\n" b"s\x86b."
    ),
    "calling a function": b"\x80\x02ctorch.nn.functional\nrelu\nI1\n\x85R.",
    "inst": b"(ios\nsystem\n.",
    "obj": b"(cos\nsystem\no.",
    "extension": b"\x80\x02\x82\x01.",
    "dotted": b"\x80\x04X\x05\x00\x00\x00torchX\x0b\x00\x00\x00serializatio\x93.",
    "through a module": b"\x80\x04\x8c\x05torch\x8c\x11nn.functional.torch\x93.",
    "modules of a module": (
        b"\x80\x04\x8c\x12torch.nn.functional\x8c\x0bholdfast.os\x93."
    ),
    "stack": b"\x80\x02\x85\x85\x85.",
    "no stop": b"\x80\x02I1\n",
    "long memo": b"\x80\x02Nr\xff\xff\xff\x7f0Nj\xff\xff\xff\x6f.",
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 45) + b".",
    "bytearray that is not there": b"\x80\x05\x96" + struct.pack("<Q", 1 << 45) + b".",
    "frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 1 << 45) + b".",
    "persistent": b"\x80\x02I1\nQ.",
    "storage of no type": (
        b"\x80\x02" + STORAGE.replace(b"Float", b"Strange") + b"K\x02tQ."
    ),
    "reconstructor": (
        b"ccopyreg\n_reconstructor\n(ctorch.nn\nLinear\nc__builtin__\n" b"int\nI5\ntR."
    ),
    "numpy object array": b"\x80\x02cnumpy\ndtype\nX\x01\x00\x00\x00O\x85R.",
    "numpy state": (
        b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R(I3\nX\x01\x00\x00\x00"
        b"<I1\nNNI9\nI9\nI0\ntb."
    ),
    "unhashable": b"\x80\x02}]Ns.",
    "tensor of nothing": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NI0\n))\x89NtR.",
    "flag that is a tensor": (
        b"\x80\x02ctorch._utils\n_rebuild_parameter\n"
        + tensor_pickle((2,), (1,))[2:-1]
        + b"q\x01h\x01ccollections\nOrderedDict\n)R\x87R."
    ),
    "parameter of nothing": b"\x80\x02ctorch._utils\n_rebuild_parameter\n(N\x88NtR.",
    "type of nothing": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\n"
        b"list\nctorch\nTensor\n)}tR."
    ),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_forged_pickles(name):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    forward = nn.Linear.forward
    with pytest.raises(FormatError):
        holdfast.load(archive(HAND_MADE[name]))
    assert nn.Linear.forward is forward
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


LAYOUTS = {
    "too large": ((3,), (1,)),
    "far": ((2,), (1,), 1),
    "absurd": ((1 << 40, 1 << 40), (1, 1)),
    "stride": ((2,), (1 << 60,)),
    "negative size": ((-1,), (1,)),
    "negative stride": ((2,), (-1,), 1),
    "negative offset": ((1,), (1,), -1),
    "lengths differ": ((2,), (1, 1)),
    "rank": ((1,) * 1000, (1,) * 1000),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_that_leave_their_storage(name):
    with pytest.raises(FormatError, match="damaged"):
        holdfast.load(archive(tensor_pickle(*LAYOUTS[name])))


def test_sizes_that_are_lies():
    good = tensor_pickle((2,), (1,))
    assert holdfast.load(archive(good)).tolist() == [0, 0]
    for count in (1, 3, -2, 1 << 61):
        with pytest.raises(FormatError, match="data/0 has 8 bytes for"):
            holdfast.load(archive(tensor_pickle((1,), (1,), count=count)))
    # An expanded tensor is as small as it was; nobody reserves its sizes.
    wide = holdfast.load(archive(tensor_pickle((1 << 40,), (0,))))
    assert wide.shape == (1 << 40,) and wide[123].item() == 0


def test_names_are_no_paths():
    for key in (b"../../etc/passwd", b"/etc/passwd", b"..", b""):
        text = b"X" + struct.pack("<I", len(key)) + key
        pickled = tensor_pickle((2,), (1,)).replace(b"X\x01\x00\x00\x000", text)
        with pytest.raises(FormatError, match="is missing"):
            holdfast.load(archive(pickled))


def test_bombs():
    zeros = bytes(1 << 22)
    with pytest.raises(FormatError, match="larger than the file"):
        holdfast.load(
            archive(
                tensor_pickle((1 << 20,), (1,), count=1 << 20),
                zeros,
                compression=zipfile.ZIP_DEFLATED,
            )
        )
    # The same bytes as many entries.
    content = bytearray(archive(tensor_pickle((2,), (1,)), bytes(1 << 16)).getvalue())
    end = content.rindex(b"PK\5\6")
    size, start = struct.unpack("<II", content[end + 12 : end + 20])
    directory = bytes(content[start : start + size])
    many = directory * 300
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 900, 900, len(many), start, 0)
    with pytest.raises(FormatError, match="larger than the file|damaged"):
        holdfast.load(io.BytesIO(bytes(content[:start]) + many + tail))


def test_two_pickles_and_encrypted_entries():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("a/data.pkl", b"\x80\x02I1\n.")
        made.writestr("b/data.pkl", b"\x80\x02I2\n.")
    buffer.seek(0)
    with pytest.raises(FormatError, match="some other zip"):
        holdfast.load(buffer)
    content = bytearray(archive(b"\x80\x02I1\n.").getvalue())
    for magic, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        position = content.index(magic)
        content[position + offset] |= 1
    with pytest.raises(FormatError, match="encrypted"):
        holdfast.load(io.BytesIO(bytes(content)))


def test_random_damage_never_crashes():
    """Random bytes in the pickle itself, whose checksum an attacker fixes."""
    import random

    buffer = io.BytesIO()
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    holdfast.save({"m": model, "s": model.state_dict(), "x": [1, 2.5, "a"]}, buffer)
    with zipfile.ZipFile(io.BytesIO(buffer.getvalue())) as made:
        good = made.read("archive/data.pkl")
        entries = {n: made.read(n) for n in made.namelist() if "/data/" in n}
    rng = random.Random(5)
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as made:
            made.writestr("archive/data.pkl", bytes(bad))
            for name, data in entries.items():
                made.writestr(name, data)
        buffer.seek(0)
        try:
            holdfast.load(buffer)
        except (FormatError, NotImplementedError):
            pass


def test_unsafe_error_is_what_pytorch_raises():
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        holdfast.load(archive(pickle.dumps(Run(note), 2)), weights_only=True)
