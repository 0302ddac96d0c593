# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The idx format of the MNIST family: big-endian sizes, then unsigned bytes."""

import gzip
import math
import os
import struct
import zlib

import numpy

LIMIT = 1 << 30  # bytes; the largest such file, EMNIST's byclass, has 547 MB
_PIECE = 1 << 20
_GZIP_RATIO = 1040  # deflate gets no further than 1032
_UNSIGNED_BYTE = 8


def read_idx(path, dimensions):
    """The array in an idx file, plain or .gz: uint8, of `dimensions` sizes, writable.

    RuntimeError with the figures where the file is damaged or holds something else.
    No more memory is taken than the file fills.
    """
    path = os.fspath(path)
    on_disk = os.path.getsize(path)
    zipped = path.endswith(".gz")
    try:
        with gzip.open(path) if zipped else open(path, "rb") as file:
            shape = _sizes(path, file, dimensions)
            wanted = math.prod(shape)
            # A count that the file cannot hold is told before anything is read.
            most = on_disk * _GZIP_RATIO if zipped else on_disk - 4 - 4 * dimensions
            if wanted > LIMIT or wanted > most:
                raise _damaged(
                    path,
                    f"its sizes {_times(shape)} ask for {wanted} bytes, where a file "
                    f"of {on_disk} bytes holds at most {min(most, LIMIT)}",
                )
            data = _read(path, file, wanted)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(path, f"gzip: {error}") from error
    return numpy.frombuffer(data, numpy.uint8).reshape(shape)


def _sizes(path, file, dimensions):
    header = file.read(4)
    if len(header) < 4 or header[:2] != b"\0\0":
        raise _damaged(
            path, f"it begins with 0x{header.hex()}, where idx begins with two zeros"
        )
    if (header[2], header[3]) != (_UNSIGNED_BYTE, dimensions):
        raise _damaged(
            path,
            f"its magic number is 0x{header.hex()}, where unsigned bytes in "
            f"{dimensions} dimensions have 0x0000{_UNSIGNED_BYTE:02x}{dimensions:02x}",
        )
    sizes = file.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise _damaged(path, f"it ends after {4 + len(sizes)} bytes, within its sizes")
    return struct.unpack(f">{dimensions}I", sizes)


def _read(path, file, wanted):
    data = bytearray()
    while len(data) < wanted:
        piece = file.read(min(_PIECE, wanted - len(data)))
        if not piece:
            raise _damaged(
                path, f"it ends after {len(data)} of {wanted} bytes of values"
            )
        data += piece
    # Reading on to the end is also what has gzip check its checksum.
    if file.read(1):
        raise _damaged(path, f"it goes on after the {wanted} bytes of its sizes")
    return data


def _times(shape):
    return " x ".join(map(str, shape))


def _damaged(path, what):
    return RuntimeError(
        f"{path} is damaged, or no such file of the data set: {what}. "
        "Get the file again."
    )
