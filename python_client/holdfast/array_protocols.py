# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How other libraries see a tensor, and bring one: __array_interface__, DLPack.

Over shared memory what they see is the tensor's own memory; over gRPC a copy, which
follows it while it is small and else is read-only. What
they bring is copied once. Memory of GPUs: device_arrays.py.
"""

from holdfast import _C, device_arrays
from holdfast._registry import function, method

_ops = _C.ops
Tensor = _C.Tensor

_CPU = 1  # DLPack's kDLCPU


def _array_interface(self):
    """NumPy's description of the memory, with the memory in it."""
    import numpy

    if self.requires_grad:
        raise AttributeError("a tensor that requires grad: use detach()")
    if self.dtype is _C.bfloat16:
        raise AttributeError("NumPy has no bfloat16")
    shape = tuple(self.shape)
    tensor = _ops.detach(self)
    from holdfast.tensor_extras import mirrored_memory

    memory = mirrored_memory(tensor)
    if memory is not None:
        offset, strides = tensor.storage_offset(), tuple(tensor.stride())
        return _interface(numpy, tensor, memory, offset, strides)
    if self._session.transport != "shm" or not tensor.numel():
        tensor = tensor.contiguous()
    # The memory from its start to the last element, as bytes without gaps.
    offset, strides = tensor.storage_offset(), tuple(tensor.stride())
    count = 0
    if tensor.numel():
        count = 1 + sum((n - 1) * step for n, step in zip(shape, strides))
    memory = _ops.as_strided(tensor, (count,), (1,), offset)._buffer()
    return _interface(numpy, tensor, memory, 0, strides)


def _interface(numpy, tensor, memory, offset, strides):
    return {
        "version": 3,
        "shape": tuple(tensor.shape),
        "typestr": numpy.dtype(tensor.dtype.name).str,
        "data": memory,
        # Said also where they are plain: Pillow then takes tobytes().
        "strides": tuple(step * tensor.itemsize for step in strides),
        "offset": offset * tensor.itemsize,
    }


Tensor.__array_interface__ = property(_array_interface)


@method
def tobytes(self):
    """The elements in row-major order, as bytes; waits."""
    return memoryview(_ops.detach(self).contiguous()._bytes()).tobytes()


Tensor.__cuda_array_interface__ = property(device_arrays.cuda_array_interface)


@method
def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of the elements, for from_dlpack() of other libraries.

    Of a tensor on a GPU of this machine, over shared memory, the tensor's own memory:
    what was asked of it before is done; call cuda.synchronize() before reading what
    later ops write to it. Memory of other sessions is refused: clone() it first.
    """
    if self.requires_grad:
        raise RuntimeError(
            "Can't export tensors that require gradient, use tensor.detach()"
        )
    if device_arrays.is_on_gpu(self):
        return device_arrays.capsule(self, stream, max_version, dl_device, copy)
    if stream is not None and stream != -1:
        raise RuntimeError(
            f"the tensor is in host memory: stream must be None: {stream}"
        )
    if dl_device is not None and tuple(dl_device) != (_CPU, 0):
        raise BufferError(f"the tensor is in host memory: it cannot be on {dl_device}")
    return (self.clone() if copy else self).numpy().__dlpack__()


@method
def __dlpack_device__(self):
    """(device type, index), as DLPack numbers them: (1, 0) in host memory, (2, i) on
    the GPU that this process knows as i."""
    if device_arrays.is_on_gpu(self):
        return device_arrays.CUDA, device_arrays.ordinal_of(self)
    return _CPU, 0


@method
def __array_namespace__(self, /, *, api_version=None):
    """holdfast.array_api, the array API standard's functions; ValueError for a revision
    that it does not follow."""
    from holdfast import array_api

    if api_version not in (None, *array_api.REVISIONS):
        raise ValueError(
            "holdfast.array_api follows these revisions of the array API standard: "
            f"{', '.join(array_api.REVISIONS)}. Got {api_version!r}."
        )
    return array_api


@method
def to_device(self, device, /, *, stream=None):
    """This tensor, or a copy of one that is not on that device (the array API's
    to()); ops run in their order, so there is no stream to choose."""
    if stream is not None:
        raise ValueError(
            f"to_device(): the daemon orders copies itself, leave stream=None. Got "
            f"{stream!r}."
        )
    return self.to(device=device)


class _Owned:
    """A bare capsule as an object of the protocol."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, stream=None):
        return self._capsule

    def __dlpack_device__(self):
        return _CPU, 0


@function
def from_dlpack(ext_tensor):
    """A tensor with the elements of an object that has __dlpack__, or of a capsule.

    Copied once, but for a tensor of Holdfast's own. An array on a GPU (also one with
    __cuda_array_interface__ alone) is copied there, once its stream has made it; by
    way of the host where the daemon cannot open its memory.
    """
    if isinstance(ext_tensor, Tensor):
        return _ops.detach(ext_tensor)
    import numpy

    if not hasattr(ext_tensor, "__dlpack__"):
        if hasattr(ext_tensor, "__cuda_array_interface__"):
            return device_arrays.from_cuda_array(ext_tensor)
        if type(ext_tensor).__name__ != "PyCapsule":
            raise TypeError(
                "from_dlpack() takes an object with __dlpack__ or a capsule. Got "
                f"{type(ext_tensor).__name__}."
            )
        opened = _C.open_capsule(ext_tensor)
        if opened is not None:
            return device_arrays.from_capsule(opened)
        ext_tensor = _Owned(ext_tensor)
    elif ext_tensor.__dlpack_device__()[0] in device_arrays.GPUS:
        return device_arrays.from_dlpack_object(ext_tensor)
    return _C.tensor(numpy.from_dlpack(ext_tensor))


@function
def to_dlpack(tensor):
    """The DLPack capsule of a tensor's elements."""
    return tensor.__dlpack__()
