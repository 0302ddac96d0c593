# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""CIFAR's files: pickles of dicts with lists and arrays, of which nothing is run."""

import io
import os

import numpy

from holdfast.serialization import safe_numpy
from holdfast.serialization.unpickler import DAMAGE, SafeUnpickler, UnsafeError

LIMIT = 1 << 29  # bytes; the largest such file, CIFAR-100's train, has 155 MB


def read_pickle(path):
    """The dict in a pickle that Python 2 or 3 wrote, its arrays NumPy's.

    RuntimeError for a damaged file, and for one that names anything but what
    NumPy's arrays consist of.
    """
    size = os.path.getsize(path)
    if size > LIMIT:
        raise RuntimeError(f"{path} has {size} bytes, where at most {LIMIT} are read.")
    with open(path, "rb") as file:
        data = file.read(size)
    try:
        value = _BatchUnpickler(io.BytesIO(data)).load()
    except UnsafeError as error:
        raise RuntimeError(f"{path} is no file of the data set: {error}") from error
    except DAMAGE as error:
        raise RuntimeError(
            f"{path} is damaged ({len(data)} bytes): {type(error).__name__}: {error}. "
            "Get the file again."
        ) from error
    if not isinstance(value, dict):
        raise RuntimeError(
            f"{path} holds a {type(value).__name__}, where a dict must be"
        )
    return value


class _BatchUnpickler(SafeUnpickler):
    """Knows arrays, and no more."""

    dispatch = dict(SafeUnpickler.dispatch)

    def __init__(self, file):
        # Python 2's strings, the pixels among them, as text that says each byte.
        super().__init__(file, None, strict=True, encoding="latin1")

    def find_class(self, module, name):
        value = safe_numpy.find(module, name)
        if (module, name) == ("_codecs", "encode"):
            value = _encoded
        if value is None:
            raise UnsafeError(f"it names {module}.{name}, which is not loaded.")
        self._callable[id(value)] = value, True
        return value

    def persistent_load(self, pid):
        raise UnsafeError("it refers to values outside of it.")

    def load_build(self):
        target, state = self.stack[-2:]
        array = isinstance(target, numpy.ndarray)
        if array and isinstance(state, tuple) and isinstance(state[-1], str):
            self.stack[-1] = *state[:-1], state[-1].encode("latin1")
        super().load_build()

    dispatch[b"b"[0]] = load_build


def _encoded(text, encoding):
    # How Python 3 writes bytes in Python 2's protocols.
    if encoding != "latin1" or not isinstance(text, str):
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")
