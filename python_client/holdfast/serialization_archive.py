# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The zip archive that save writes and load reads: see serialization."""

import contextlib
import errno
import io
import json
import os
import struct
import tempfile
import zipfile

from .serialization import FormatError
from .serialization_values import Decoder, Encoder

_FORMAT = "holdfast"
_VERSION = 1
_ALIGNMENT = 64
_DATA = "data.json"
# A fixed time makes equal contents equal files.
_TIME = (1980, 1, 1, 0, 0, 0)


def write(obj, f):
    """Writes `obj` to a binary file object, or atomically to a path."""
    encoder = Encoder()
    root = encoder.encode(obj)
    arrays = encoder.arrays()
    header = {"format": _FORMAT, "version": _VERSION, "root": root}
    if hasattr(f, "write"):
        _write(f, header, arrays)
        return
    path = os.fspath(f)
    directory = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(
        prefix=os.path.basename(path) + ".", suffix=".tmp", dir=directory
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write(file, header, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_directory(directory)


# ---- writing


def _write(file, header, arrays):
    if not (hasattr(file, "tell") and getattr(file, "seekable", lambda: False)()):
        buffer = io.BytesIO()
        _write(buffer, header, arrays)
        file.write(buffer.getvalue())
        return
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(header, separators=(",", ":"), allow_nan=False)
        archive.writestr(_info(_DATA), text.encode())
        for i, array in enumerate(arrays):
            info = _info(f"tensors/{i}")
            _align(info, archive.fp.tell())
            with archive.open(info, "w", force_zip64=array.nbytes > 1 << 31) as out:
                # An empty array has no bytes to view.
                if array.nbytes:
                    out.write(memoryview(array).cast("B"))


def _info(name):
    info = zipfile.ZipInfo(name, _TIME)
    info.external_attr = 0o600 << 16
    return info


def _align(info, position):
    """Pads the entry's header so that its data starts at a multiple of 64."""
    # 30 bytes and the name; 20 more where sizes need 64 bits are a multiple
    # of 4 only, so that entries above 2 GiB may be off. Readers do not mind.
    start = position + 30 + len(info.filename) + 4
    fill = -start % _ALIGNMENT
    # An extra field: id 0xD935 (Android's alignment), size, zeros.
    info.extra = b"\x35\xd9" + fill.to_bytes(2, "little") + bytes(fill)


def _mode(path):
    """The mode of the file that is replaced, or what open() would give."""
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_directory(directory):
    """Makes the new name survive a crash, where the system can."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


# ---- reading

# What zipfile raises when an archive is damaged.
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


@contextlib.contextmanager
def _damage_as(format_error):
    try:
        yield
    except _DAMAGE as error:
        raise format_error(error) from None
    except OSError as error:
        # A position that does not exist, not a disk that fails.
        if error.errno != errno.EINVAL:
            raise
        raise format_error(error) from None


def read(f, map_location):
    """What `write` wrote; FormatError for everything else."""
    name = getattr(f, "name", None) if hasattr(f, "read") else os.fspath(f)
    what = repr(name) if isinstance(name, str) else "the file"
    with contextlib.ExitStack() as stack:
        # Opened here, so that a missing file is what open() says it is.
        file = f if hasattr(f, "read") else stack.enter_context(open(f, "rb"))
        archive = _Archive(file, what)
        decoder = Decoder(archive.tensor_bytes, what, map_location)
        return decoder.decode(archive.root())


class _Archive:
    """The entries of a file, each checked before it is believed."""

    def __init__(self, file, what):
        self._what = what
        with _damage_as(lambda error: self._foreign(f"a damaged one: {error}")):
            self._zip = zipfile.ZipFile(file)

    def root(self):
        """The JSON of what was saved."""
        names = self._zip.namelist()
        if _DATA not in names:
            torch = any(name.endswith("/data.pkl") for name in names)
            raise self._foreign(
                "a PyTorch checkpoint (save its tensors as NumPy arrays there)"
                if torch
                else "some other zip archive"
            )
        try:
            header = json.loads(self._entry(_DATA))
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"{_DATA}: {error}") from None
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            raise self._foreign(f"another archive with a {_DATA}")
        version = header.get("version")
        if version != _VERSION:
            raise FormatError(
                f"[load] {self._what} has format version {version!r}; this holdfast "
                f"reads {_VERSION}. Update holdfast."
            )
        return header.get("root")

    def tensor_bytes(self, number):
        """The elements of tensor `number`."""
        return self._entry(f"tensors/{number}")

    def _entry(self, name):
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise self._damaged(f"{name} is missing") from None
        # Entries are stored, so that none is larger than its file.
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise self._damaged(f"{name} is compressed or encrypted")
        if info.file_size != info.compress_size:
            raise self._damaged(f"{name} has two sizes")
        with _damage_as(lambda error: self._damaged(f"{name}: {error}")):
            return self._zip.read(info)

    def _foreign(self, found):
        return FormatError(
            f"[load] {self._what} must be a file that holdfast.save wrote. Got {found}."
        )

    def _damaged(self, detail):
        return FormatError(f"[load] {self._what} is damaged: {detail}.")
