# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Memory through which a worker hands arrays to the program.

One file in memory per worker, without a name: it is gone when the last process
that has it open ends, however it ends, and nobody unlinks anything. The worker
alone decides what lies where; the program tells it which places it has read.
"""

import mmap
import os
from multiprocessing import reduction

_ALIGNMENT = 64
_SMALLEST = 4096
_GROWTH = 4 << 20  # bytes that the file grows by, at least


def _new_file():
    if hasattr(os, "memfd_create"):
        return os.memfd_create("holdfast-batches", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedFile:
    """The file, as one process sees it. Not thread-safe."""

    def __init__(self, descriptor=None):
        self._descriptor = _new_file() if descriptor is None else descriptor
        self._map = None

    def __reduce__(self):  # to a worker that is being spawned
        return _received, (reduction.DupFd(self._descriptor),)

    def __del__(self):
        self.close()

    def close(self):
        """Arrays over the memory stay valid."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._map = None

    def array(self, offset, shape, dtype):
        """A NumPy array over the place. REQUIRES: it was allocated."""
        import numpy

        count = 1
        for size in shape:
            count *= size
        end = offset + count * dtype.itemsize
        if self._map is None or len(self._map) < end:
            size = os.fstat(self._descriptor).st_size
            self._map = mmap.mmap(self._descriptor, size) if size else None
        if count == 0:
            return numpy.empty(shape, dtype)
        return numpy.frombuffer(self._map, dtype, count, offset).reshape(shape)


def _received(duplicate):
    return SharedFile(duplicate.detach())


class Allocator:
    """Places in a SharedFile; for the worker."""

    def __init__(self, file):
        self.file = file
        self._end = 0
        self._free = {}  # size: offsets
        self._taken = {}  # offset: size

    def allocate(self, size):
        """The offset of `size` bytes; OSError where the machine has no memory."""
        size = _size_class(size)
        free = self._free.get(size)
        if free:
            offset = free.pop()
        else:
            offset = self._end
            self._grow(offset + size)
            self._end = offset + size
        self._taken[offset] = size
        return offset

    def free(self, offsets):
        """These places have been read."""
        for offset in offsets:
            self._free.setdefault(self._taken.pop(offset), []).append(offset)

    def _grow(self, end):
        descriptor = self.file._descriptor
        size = os.fstat(descriptor).st_size
        if end > size:
            # Pages that do not exist would be a SIGBUS when they are written.
            os.posix_fallocate(descriptor, size, max(end - size, _GROWTH))


def _size_class(size):
    """`size` rounded up to a quarter of a power of two, so that batches that
    differ a little use the same places."""
    if size <= _SMALLEST:
        return -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
    step = 1 << (size.bit_length() - 3)
    return -(-size // step) * step
