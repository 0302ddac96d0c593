# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Batches on their way from a worker to the program.

A batch is pickled, but for its arrays and tensors, whose elements lie in shared
memory: the worker stacks samples right there, and the program uploads from
there. Nothing that the default collation makes needs a session in the worker.
"""

import io
import pickle
import threading

import holdfast

from .collate import collate_with
from .shared_arrays import Allocator

# What travels in the message itself; few are on their way, and a pipe has 64 KiB.
INLINE_BYTES = 1024

_NUMPY_TYPES = {
    "bool": "bool",
    "uint8": "uint8",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}
_reading = threading.local()


class SharedTensor:
    """An array in shared memory that becomes a tensor in the program."""

    def __init__(self, offset, shape, dtype):
        self.place = (offset, shape, dtype.str)

    def __reduce__(self):
        return _tensor_at, self.place


class BatchWriter:
    """Packs batches; for one worker."""

    def __init__(self, file):
        self._allocator = Allocator(file)
        self._offsets = []

    def free(self, offsets):
        """The program has read these places."""
        self._allocator.free(offsets)

    def begin(self):
        """Forgets what a batch that failed has taken."""
        self.free(self._offsets)
        self._offsets = []

    def collate(self, batch):
        """default_collate, into shared memory."""
        return collate_with(batch, self._put)

    def pack(self, batch):
        """(bytes or the place of bytes, offsets that the batch takes)."""
        stream = io.BytesIO()
        _Pickler(stream, self).dump(batch)
        data = stream.getvalue()
        if len(data) > INLINE_BYTES:
            import numpy

            whole = numpy.frombuffer(data, numpy.uint8)
            data = (self.store(whole), whole.size)
        offsets, self._offsets = self._offsets, []
        return data, offsets

    def store(self, array):
        """Copies an array there; returns its offset."""
        offset, out = self._empty(array.shape, array.dtype)
        out[...] = array
        return offset

    def _empty(self, shape, dtype):
        size = dtype.itemsize
        for length in shape:
            size *= length
        offset = self._allocator.allocate(size)
        self._offsets.append(offset)
        return offset, self._allocator.file.array(offset, shape, dtype)

    def _put(self, stack, shape, dtype):
        if dtype.name not in _NUMPY_TYPES:
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{dtype.name}. The only "
                f"supported types are: {', '.join(_NUMPY_TYPES)}."
            )
        offset, out = self._empty(shape, dtype)
        stack(out)
        return SharedTensor(offset, shape, dtype)


class _Pickler(pickle.Pickler):
    """Keeps the elements of arrays and tensors out of the pickle."""

    def __init__(self, stream, writer):
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self._writer = writer

    def reducer_override(self, value):
        """pickle's hook: how `value` is made again in the program."""
        if isinstance(value, holdfast.Tensor):
            return self._tensor(value)
        if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
            if value.dtype.hasobject:
                return NotImplemented
            offset = self._writer.store(value)
            return _array_at, (offset, value.shape, value.dtype)
        return NotImplemented

    def _tensor(self, tensor):
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, "
                "since autograd does not support crossing process boundaries.  If you "
                "just want to transfer the data, call detach() on the tensor before "
                "serializing (e.g., putting it on the queue)."
            )
        values, dtype = tensor.detach(), None
        if tensor.dtype is holdfast.bfloat16:  # NumPy has no such type
            values, dtype = values.float(), "bfloat16"
        array = values.numpy()
        place = (self._writer.store(array), array.shape, array.dtype.str)
        kind = type(tensor) if type(tensor) is not holdfast.Tensor else None
        if dtype is None and kind is None and not tensor.requires_grad:
            return _tensor_at, place
        return _tensor_like, (place, dtype, kind, tensor.requires_grad)


def unpack(data, file):
    """The batch that a BatchWriter packed; tensors are made in the default
    session, with one copy."""
    _reading.file = file
    try:
        if isinstance(data, tuple):
            import numpy

            offset, size = data
            data = file.array(offset, (size,), numpy.dtype(numpy.uint8))
        return pickle.loads(data)
    finally:
        _reading.file = None


def _tensor_at(offset, shape, dtype):
    import numpy

    return holdfast.from_numpy(_reading.file.array(offset, shape, numpy.dtype(dtype)))


def _tensor_like(place, dtype, kind, requires_grad):
    tensor = _tensor_at(*place)
    if dtype is not None:
        tensor = tensor.to(getattr(holdfast, dtype))
    if kind is not None:
        return (
            tensor.as_subclass(kind)
            if kind is not holdfast.nn.Parameter
            else (holdfast.nn.Parameter(tensor, requires_grad))
        )
    return tensor.requires_grad_(requires_grad)


def _array_at(offset, shape, dtype):
    return _reading.file.array(offset, shape, dtype).copy()
