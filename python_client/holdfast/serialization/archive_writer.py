# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The zip archive that save writes: PyTorch's layout, version 3.

    archive/data.pkl    the pickle; storages by number
    archive/byteorder   "little"
    archive/data/<n>    the elements of storage n, aligned to 64 bytes
    archive/version     "3"

Everything is stored as it is, with zip's checksums.
"""

import os
import zipfile

from . import atomic_file
from .checkpoint_pickler import CheckpointPickler
from .storages import bar, flat_storage, pieces

_ALIGNMENT = 64
# A fixed time makes equal contents equal files.
_TIME = (1980, 1, 1, 0, 0, 0)


def write(obj, f):
    """Writes `obj` to a binary file object, or atomically to a path."""
    # All that can be refused is refused before anything is written.
    if not hasattr(f, "write"):
        os.fspath(f)
    pickler = CheckpointPickler()
    data = pickler.pickled(obj)
    storages = list(pickler.storages.values())
    if hasattr(f, "write"):
        _write(f if hasattr(f, "flush") else _Flushed(f), data, storages)
        return
    with atomic_file.written(f) as file:
        _write(file, data, storages)


class _Flushed:
    """A file object that has only write()."""

    def __init__(self, file):
        self._file = file

    def write(self, data):
        self._file.write(data)
        return len(data)

    def flush(self):
        pass


def _write(file, data, storages):
    total = sum(storage.count * storage.dtype.itemsize for storage in storages)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive, bar(
        "saving", total
    ) as advance:
        _add(archive, "archive/data.pkl", [data])
        _add(archive, "archive/byteorder", [b"little"])
        for storage in storages:
            flat = flat_storage(storage.tensor, storage.count)
            name = f"archive/data/{storage.key}"
            _add(archive, name, pieces(flat), flat.nbytes, advance)
        _add(archive, "archive/version", [b"3\n"])


def _add(archive, name, buffers, size=0, advance=lambda count: None):
    info = zipfile.ZipInfo(name, _TIME)
    info.external_attr = 0o600 << 16
    large = size > 1 << 31
    _align(info, archive.fp.tell(), large)
    with archive.open(info, "w", force_zip64=large) as out:
        for buffer in buffers:
            out.write(buffer)
            advance(len(buffer))


def _align(info, position, large):
    """Pads the entry's header so that its data starts at a multiple of 64."""
    # 30 bytes, the name, 20 more where sizes need 64 bits, and the field's own 4.
    start = position + 30 + len(info.filename) + 4 + (20 if large else 0)
    fill = -start % _ALIGNMENT
    # An extra field: id 0xD935 (Android's alignment), size, zeros.
    info.extra = b"\x35\xd9" + fill.to_bytes(2, "little") + bytes(fill)
