# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors on a GPU and other libraries of the process: DLPack and
__cuda_array_interface__, without a copy on the way out and with one, on the GPU, on
the way in.

Out: the other library has the tensor's own memory, opened in this process (CUDA IPC).
What was asked of the tensor before is done. Later ops on it run on the daemon's
stream: call `holdfast.cuda.synchronize()` before the library reads what they write,
and let the library finish (`torch.cuda.synchronize()`) before an op reads what it
wrote. The tensor lives as long as the library's array; the memory is the session's and
goes with it. In: the elements are copied once the producer's stream has made them, and
the producer may go on when from_dlpack() returns.
"""

from holdfast import _C
from holdfast.errors import UnsupportedError

CUDA = 2  # DLPack's kDLCUDA
GPUS = (CUDA, 13)  # and managed memory

_LEGACY_STREAM = 1  # CUDA's legacy default stream, as DLPack numbers streams


def is_on_gpu(tensor):
    return tensor.device.type == "cuda"


def ordinal_of(tensor):
    """The number by which this process knows the tensor's GPU."""
    return _C.gpu_ordinal(tensor)


def capsule(tensor, stream, max_version, dl_device, copy):
    """Tensor.__dlpack__ of a tensor on a GPU."""
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"stream must be None or an int, not {stream!r}")
    if dl_device is not None and tuple(dl_device) != (CUDA, ordinal_of(tensor)):
        if dl_device[0] != 1 or copy is False:
            raise BufferError(f"a tensor on {tensor.device} cannot be on {dl_device}")
        return tensor.cpu().numpy().__dlpack__()
    if copy:
        tensor = tensor.clone()
    # All that writes the tensor is done when this returns: no stream has to wait.
    return _C.dlpack_capsule(tensor, max_version is not None and max_version[0] >= 1)


def cuda_array_interface(tensor):
    """Tensor.__cuda_array_interface__: version 3, the tensor's own memory."""
    import numpy

    if not is_on_gpu(tensor):
        raise AttributeError(
            "__cuda_array_interface__: the tensor must be on a GPU. Got one on "
            f"{tensor.device}."
        )
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. Use "
            "var.detach() to get Variable that doesn't require grad."
        )
    if tensor.dtype is _C.bfloat16:
        raise AttributeError("__cuda_array_interface__ has no bfloat16: use DLPack")
    address, strides = _C.device_memory(tensor)
    return {
        "version": 3,
        "shape": tuple(tensor.shape),
        "typestr": numpy.dtype(tensor.dtype.name).str,
        "data": (address, False),
        "strides": tuple(step * tensor.itemsize for step in strides),
        "stream": None,  # all is done
    }


def from_capsule(opened, stream=None):
    """A tensor from what _C.open_capsule found."""
    ordinal, address, dtype, shape, strides, held = opened
    tensor = _bring(ordinal, address, dtype, shape, strides, stream)
    del held  # the producer's memory until here
    return tensor


def from_dlpack_object(source):
    """A tensor from an object whose __dlpack_device__ is a GPU."""
    # Its stream makes the legacy one wait, and that is waited for.
    try:
        made = source.__dlpack__(stream=_LEGACY_STREAM, max_version=(1, 0))
    except TypeError:  # from before there were versions
        made = source.__dlpack__(stream=_LEGACY_STREAM)
    opened = _C.open_capsule(made)
    if opened is None:
        raise BufferError(
            "from_dlpack(): what __dlpack__ gives must be on the GPU that "
            "__dlpack_device__ names"
        )
    return from_capsule(opened, _LEGACY_STREAM)


def from_cuda_array(source):
    """A tensor from an object with __cuda_array_interface__."""
    import numpy

    told = source.__cuda_array_interface__
    if told.get("mask") is not None:
        raise UnsupportedError(
            "from_dlpack(): an array must have no mask. Got one of shape "
            f"{tuple(told['shape'])}: fill its masked elements in first."
        )
    layout = numpy.dtype(told["typestr"])
    dtype = getattr(_C, layout.name, None)
    if dtype is None or not layout.isnative:
        raise TypeError(f"from_dlpack(): there are no tensors of {told['typestr']}")
    shape, strides = tuple(told["shape"]), told.get("strides")
    if strides is None:
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
    elif any(step % layout.itemsize for step in strides):
        raise TypeError("from_dlpack(): strides must be whole elements")
    else:
        strides = [step // layout.itemsize for step in strides]
    address = told["data"][0]
    stream = told.get("stream")
    ordinal = _C.ordinal_of_memory(address) if 0 not in shape else 0
    # Without word of a stream all of them may still write.
    return _bring(ordinal, address, dtype, shape, tuple(strides), stream)


def _bring(ordinal, address, dtype, shape, strides, stream):
    session = _C.default_session()
    if session.device == "cpu":
        raise RuntimeError(
            "from_dlpack(): the daemon must have a GPU to take an array on one. Got "
            "a daemon on the CPU: bring the array with .cpu()"
        )
    tensor = None
    if 0 not in shape:
        _C.await_producer(ordinal, stream)
        tensor = _C.copy_memory(address, ordinal, dtype, shape, strides)
    if tensor is None:
        tensor = _through_host(session, ordinal, address, dtype, shape, strides)
    return tensor


def _name_of(session, ordinal):
    """The daemon's device that this process knows by the number, else its first."""
    for i in range(session.device_count):
        try:
            if _C.gpu_ordinal(i + 1) == ordinal:
                return f"cuda:{i}"
        except RuntimeError:
            continue  # a GPU that this process does not see
    return "cuda:0"


def _through_host(session, ordinal, address, dtype, shape, strides):
    import numpy

    half = dtype is _C.bfloat16  # NumPy has none
    kind = numpy.dtype("int16" if half else dtype.name)
    if 0 in shape:
        array = numpy.zeros(shape, kind)
    else:
        steps = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        first = sum(step for step in steps if step < 0)
        count = sum(step for step in steps if step > 0) - first + 1
        size = kind.itemsize
        held = _C.read_memory(address + first * size, ordinal, count * size)
        array = numpy.ndarray(
            shape, kind, held, -first * size, [step * size for step in strides]
        )
    tensor = _C.tensor(array, device=_name_of(session, ordinal))
    return tensor.view(dtype) if half else tensor
