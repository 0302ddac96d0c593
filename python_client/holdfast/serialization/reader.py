# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""load: finds out what a file is, and reads it."""

import contextlib
import errno
import io
import os
import struct
import zipfile

import holdfast
from holdfast.errors import UnsupportedError

from . import FormatError, locations
from .rebuild import StorageType, StoredElements
from .storages import bar, filled, read_exactly
from .unpickler import DAMAGE, UnsafeError, unpickler

_ZIP = b"PK"
# pickle of PyTorch's magic number, protocol 2.
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def read(f, map_location, weights_only):
    """What save, PyTorch or safetensors wrote; FormatError for everything else."""
    name = getattr(f, "name", None) if hasattr(f, "read") else os.fspath(f)
    what = repr(name) if isinstance(name, str) else "the file"
    with contextlib.ExitStack() as stack:
        # Opened here, so that a missing file is what open() says it is.
        file = f if hasattr(f, "read") else stack.enter_context(open(f, "rb"))
        if not (hasattr(file, "seek") and getattr(file, "seekable", bool)()):
            file = io.BytesIO(file.read())
        start = file.tell()
        head = file.read(16)
        file.seek(start)
        if head.startswith(_ZIP):
            return ZipCheckpoint(file, what, map_location).load(weights_only)
        if head.startswith(_LEGACY):
            from .legacy import LegacyCheckpoint

            return LegacyCheckpoint(file, what, map_location).load(weights_only)
        if head[8:9] == b"{":
            from holdfast.safetensors import read_file

            return read_file(file, what, map_location)
        raise FormatError(_foreign(what, head))


def _foreign(what, head):
    if not head:
        found = "an empty file"
    elif head[:1] == b"\x80":
        found = "a pickle; pickle.load reads those"
    else:
        found = f"one that starts with {head!r}"
    return (
        f"[load] {what} must be a checkpoint of holdfast or PyTorch, or a safetensors "
        f"file. Got {found}."
    )


class _CallersError(BaseException):
    """Carries an error of the caller's past those who take errors for damage."""

    def __init__(self, error):
        self.error = error


class Checkpoint:
    """A file being read: its errors name it, its storages are made once."""

    def __init__(self, what, map_location):
        self.what = what
        self._map_location = map_location
        self._numbers = {}  # of devices, by location
        self.storages = {}

    def damaged(self, detail):
        return FormatError(f"[load] {self.what} is damaged: {detail}.")

    @contextlib.contextmanager
    def damage_as_format_error(self, place):
        try:
            yield
        except (FormatError, UnsupportedError):
            raise
        except (*DAMAGE, zipfile.BadZipFile, OverflowError, struct.error) as error:
            raise self.damaged(f"{place}: {error}") from error
        except OSError as error:
            # A position that does not exist, not a disk that fails.
            if error.errno != errno.EINVAL:
                raise
            raise self.damaged(f"{place}: {error}") from error

    def place(self, location):
        """The number of the device that storages of that location go to."""
        number = self._numbers.get(location)
        if number is not None:
            return number
        try:
            holdfast.device(location)
        except (RuntimeError, TypeError) as error:
            raise self.damaged(f"a storage's device: {error}") from None
        try:
            number = locations.number_for(location, self._map_location)
        except Exception as error:
            raise _CallersError(error) from None
        self._numbers[location] = number
        return number

    def unpickled(self, file, storage_of, weights_only, **options):
        """The object; the caller's errors are kept apart from the file's."""
        reader = unpickler(file, storage_of, weights_only, **options)
        try:
            if weights_only is False:
                return reader.load()
            with self.damage_as_format_error("its pickle"):
                return reader.load()
        except _CallersError as passed:
            raise passed.error from None


class ZipCheckpoint(Checkpoint):
    """PyTorch's format since 1.6: see archive_writer."""

    def __init__(self, file, what, map_location):
        super().__init__(what, map_location)
        with self.damage_as_format_error("its archive"):
            self._zip = zipfile.ZipFile(file)
            self._entries = {info.filename: info for info in self._zip.infolist()}
            size = file.seek(0, os.SEEK_END)
        # Entries are stored and lie one after the other: none is larger than its
        # file, nor all of them together.
        if sum(info.file_size for info in self._entries.values()) > size:
            raise self.damaged("its entries are larger than the file")

    def load(self, weights_only):
        pickles = [n for n in self._entries if n.partition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise FormatError(
                f"[load] {self.what} must be a checkpoint of holdfast or PyTorch. Got "
                "some other zip archive."
            )
        self._folder = pickles[0].partition("/")[0]
        if f"{self._folder}/constants.pkl" in self._entries:
            raise UnsupportedError(
                f"[load] {self.what} is a TorchScript archive; holdfast loads "
                "checkpoints. Save its state_dict() with torch.save."
            )
        order = self._bytes("byteorder") if self._has("byteorder") else b"little"
        if order != b"little":
            raise UnsupportedError(f"[load] {self.what} has byte order {order!r}.")
        file = io.BytesIO(self._bytes("data.pkl"))
        total = sum(i.file_size for i in self._entries.values())
        with bar("loading", total) as self._advance:
            return self.unpickled(file, self._storage_of, weights_only)

    def _has(self, name):
        return f"{self._folder}/{name}" in self._entries

    def _bytes(self, name):
        with self._open(name) as stream:
            with self.damage_as_format_error(name):
                return stream.read()

    def _open(self, name):
        info = self._entries.get(f"{self._folder}/{name}")
        if info is None:
            raise self.damaged(f"{name} is missing")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise self.damaged(f"{name} is compressed or encrypted")
        if info.file_size != info.compress_size:
            raise self.damaged(f"{name} has two sizes")
        with self.damage_as_format_error(name):
            return self._zip.open(info)

    def _storage_of(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            raise self.damaged(f"a reference {str(pid)[:60]}")
        _, kind, key, location, count = pid
        if not isinstance(kind, StorageType) or type(count) is not int:
            raise self.damaged(f"a reference {str(pid)[:60]}")
        if key not in self.storages:
            self.storages[key] = self._storage(kind.dtype, str(key), location, count)
        storage = self.storages[key]
        if storage.dtype is not kind.dtype or storage.count != count:
            raise self.damaged(f"storage {key} has two types or sizes")
        return storage

    def _storage(self, dtype, key, location, count):
        name = f"data/{key}"
        info = self._entries.get(f"{self._folder}/{name}")
        if info is None:
            raise self.damaged(f"{name} is missing")
        if not 0 <= count or count * dtype.itemsize != info.file_size:
            raise self.damaged(
                f"{name} has {info.file_size} bytes for {count} elements of {dtype}"
            )
        number = self.place(location)

        def read_into(view):
            with self._open(name) as stream, self.damage_as_format_error(name):
                read_exactly(stream, view, self.damaged, self._advance)
                stream.read(1)  # the end, where the checksum is compared

        def load():
            return filled(dtype, count, read_into, number)

        return StoredElements(dtype, count, load)


__all__ = ["Checkpoint", "UnsafeError", "ZipCheckpoint", "read"]
