# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors' memory on its way between the daemon and a file, in pieces."""

import holdfast
from holdfast import _C

from .progress import bar

# Bytes of one piece: large enough to cost nothing, small enough to hold twice.
PIECE = 16 << 20

# The names that PyTorch gives typed storages, in files.
STORAGE_NAMES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


def dtype_named(name):
    return getattr(_C, name)


def flat_storage(tensor, count):
    """The first `count` elements of a tensor's storage, in one dimension."""
    with holdfast.no_grad():
        return _C.ops.as_strided(_C.ops.detach(tensor), (count,), (1,), 0)


def extent(offset, shape, stride):
    """How many elements of a storage such a tensor needs."""
    if 0 in shape:
        return 0
    return offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride))


def pieces(flat):
    """The bytes of a 1-D tensor, as buffers of at most PIECE bytes.

    Over shared memory they are the tensor's own memory; over gRPC a piece is
    fetched when its turn comes.
    """
    if flat.numel() == 0:
        return
    if flat._session.transport == "shm":
        view = memoryview(flat._bytes())
        for start in range(0, len(view), PIECE):
            yield view[start : start + PIECE]
        return
    step = PIECE // flat.itemsize
    for start in range(0, flat.numel(), step):
        yield memoryview(_C.ops.slice(flat, 0, start, start + step)._bytes())


def filled(dtype, count, read_into, number=0):
    """A 1-D tensor of `count` elements that `read_into(bytes)` fills, on the device
    of that number.

    Over shared memory they are read straight into the daemon's memory.
    """
    if count == 0:
        return _C._from_bytes(b"", (0,), dtype, number)
    made = _C._empty_bytes((count,), dtype)
    if made is not None:
        tensor, buffer = made
        read_into(memoryview(buffer))
        return tensor
    data = bytearray(count * dtype.itemsize)
    read_into(memoryview(data))
    return _C._from_bytes(data, (count,), dtype, number)


def read_exactly(stream, view, damaged, advance=lambda count: None):
    """Fills `view` from a stream; `damaged(detail)` is raised at an early end."""
    position = 0
    while position < len(view):
        piece = stream.read(min(PIECE, len(view) - position))
        if not piece:
            raise damaged(f"it ends {len(view) - position} bytes early")
        view[position : position + len(piece)] = piece
        position += len(piece)
        advance(len(piece))


__all__ = [
    "STORAGE_NAMES",
    "bar",
    "dtype_named",
    "extent",
    "filled",
    "flat_storage",
    "pieces",
    "read_exactly",
]
