# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""safetensors files: save_file, load_file, save, load, safe_open.

A file is the length of its header (8 bytes), a header in JSON, and the elements of
its tensors one after the other. Nothing in it can run. The names are those of
safetensors.torch.
"""

import json
import math
import os
import struct
from collections.abc import Mapping

import holdfast
from holdfast import _C
from holdfast.serialization import FormatError, atomic_file
from holdfast.serialization.storages import bar, filled, pieces, read_exactly

_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_NAME_OF = {ours: name for name, ours in _NAMES.items()}
# As the format's own reader has it.
_MAX_HEADER = 100_000_000


# ---- writing


def check_tensors(tensors):
    """TypeError or RuntimeError if the format cannot hold them."""
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"[save_file] a dict of tensors is expected. Got {type(tensors).__name__}."
        )
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, holdfast.Tensor):
            raise TypeError(
                "[save_file] names and tensors are expected. Got "
                f"{name!r}: {type(tensor).__name__}."
            )
        if tensor.dtype.name not in _NAME_OF:
            raise TypeError(f"[save_file] the format has no {tensor.dtype} ({name!r}).")
    _refuse_shared(tensors)


def _header(tensors, metadata):
    """The header's bytes, and the tensors in the order in which they are written."""
    check_tensors(tensors)
    header = {}
    if metadata is not None:
        if not all(isinstance(x, str) for kv in metadata.items() for x in kv):
            raise TypeError(f"[save_file] metadata maps str to str. Got {metadata}.")
        header["__metadata__"] = dict(metadata)
    # Wide elements first keeps all of them aligned.
    order = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    end = 0
    for name, tensor in order:
        begin, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _NAME_OF[tensor.dtype.name],
            "shape": [int(size) for size in tensor.shape],
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, [tensor for _, tensor in order], end


def _refuse_shared(tensors):
    """The format cannot say that tensors share memory: they would come back apart."""
    owners = {}
    for name, tensor in tensors.items():
        owner = owners.setdefault(tensor._storage_id, name)
        if tensor.numel() and owner != name:
            raise RuntimeError(
                f"[save_file] {owner!r} and {name!r} share memory, "
                "which the format cannot hold. Save one of them, or a clone()."
            )


def _write(file, tensors, metadata):
    header, ordered, total = _header(tensors, metadata)
    file.write(header)
    with bar("saving", total) as advance:
        for tensor in ordered:
            flat = holdfast.reshape(_C.ops.detach(tensor), (-1,))
            for piece in pieces(flat):
                file.write(piece)
                advance(len(piece))


def save_file(tensors, filename, metadata=None):
    """Writes a dict of tensors to a path, completely or not at all."""
    _header(tensors, metadata)  # what it refuses, before there is a file
    with atomic_file.written(filename) as file:
        _write(file, tensors, metadata)


def save(tensors, metadata=None):
    """The bytes that save_file would write."""
    import io

    file = io.BytesIO()
    _write(file, tensors, metadata)
    return file.getvalue()


# ---- reading


class _File:
    """An open file whose header was read and checked."""

    def __init__(self, file, what):
        self._file, self._what = file, what
        start = file.tell()
        size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        length = file.read(8)
        length = struct.unpack("<Q", length)[0] if len(length) == 8 else 0
        if not 2 <= length <= min(_MAX_HEADER, size - 8):
            raise self.damaged(f"its header has {length} bytes in a file of {size}")
        self._data = start + 8 + length
        self._size = size - 8 - length
        try:
            header = json.loads(file.read(length), object_pairs_hook=self._unique)
            self.metadata = header.pop("__metadata__", None)
            self.entries = {name: self._entry(e) for name, e in header.items()}
        except FormatError:
            raise
        except (
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as e:
            raise self.damaged(f"its header: {e}") from None
        self._check_places()

    def damaged(self, detail):
        return FormatError(f"[load] {self._what} is damaged: {detail}.")

    @staticmethod
    def _unique(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name comes twice")
        return found

    @staticmethod
    def _entry(entry):
        dtype = getattr(_C, _NAMES[entry["dtype"]])
        shape, (begin, end) = entry["shape"], entry["data_offsets"]
        numbers = (*shape, begin, end)
        if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
            raise ValueError(f"shape {shape}, place {begin}..{end}")
        if end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{end - begin} bytes for {dtype} of shape {shape}")
        return dtype, tuple(shape), begin, end

    def _check_places(self):
        """Every byte belongs to one tensor, so that nothing hides or is read twice."""
        at = 0
        for _dtype, _shape, begin, end in sorted(
            self.entries.values(), key=lambda entry: entry[2:]
        ):
            if begin != at:
                raise self.damaged(f"a tensor starts at byte {begin}, not at {at}")
            at = end
        if at != self._size:
            raise self.damaged(f"its tensors take {at} bytes. Got {self._size}")

    @property
    def nbytes(self):
        return self._size

    def tensor(self, name, number, advance=lambda count: None):
        """A tensor on the device of that number."""
        dtype, shape, begin, _end = self.entries[name]

        def read_into(view):
            self._file.seek(self._data + begin)
            read_exactly(self._file, view, self.damaged, advance)

        flat = filled(dtype, math.prod(shape), read_into, number)
        if shape == tuple(flat.shape):
            return flat
        with holdfast.no_grad():
            return _C.ops.detach(_C.ops.view(flat, shape))


def read_file(file, what, map_location=None):
    """All tensors of an open file, by name."""
    from holdfast.serialization import locations

    number = locations.number_for("cpu", map_location)
    opened = _File(file, what)
    with bar("loading", opened.nbytes) as advance:
        return {name: opened.tensor(name, number, advance) for name in opened.entries}


def load_file(filename, device="cpu"):
    """All tensors of the file at a path, by name."""
    with open(filename, "rb") as file:
        return read_file(file, repr(os.fspath(filename)), device)


def load(data):
    """All tensors of a file's bytes, by name."""
    import io

    return read_file(io.BytesIO(data), "the bytes")


class safe_open:
    """`with safe_open(path, framework="pt") as f:` reads tensors one by one."""

    def __init__(self, filename, framework="pt", device="cpu"):
        self._number = _C.device_number(
            device if isinstance(device, int) else holdfast.device(str(device))
        )
        self._stream = open(filename, "rb")
        try:
            self._file = _File(self._stream, repr(os.fspath(filename)))
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stream.close()

    def keys(self):
        return list(self._file.entries)

    def metadata(self):
        return self._file.metadata

    def get_tensor(self, name):
        """The tensor; KeyError for a name that the file has not."""
        return self._file.tensor(name, self._number)
