# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.accelerator: the device that is not the CPU, if the daemon has one.

Figures of memory are those of torch.cuda, in bytes, and 0 where there is none, as in
PyTorch before its allocator is used.
"""

from collections import OrderedDict

from holdfast import cuda, memory
from holdfast._device import device
from holdfast.missing import module_getattr


def is_available():
    """Whether the daemon computes on one; connects if need be."""
    return cuda.is_available()


def device_count():
    """How many the session sees."""
    return cuda.device_count()


def current_accelerator(check_available=False):
    """Its device, or None."""
    return device("cuda") if cuda.is_available() else None


def current_device_index():
    """The index of the one that "cuda" is. RuntimeError where there is none."""
    return cuda.current_device()


def set_device_index(device, /):
    """Makes it the one that "cuda" is: an int, a str or a device; -1: nothing."""
    cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:
    """`with device_index(1):` "cuda" is the second one. None: nothing changes."""

    def __init__(self, device, /):
        self._index = device
        self._outer = None

    def __enter__(self):
        if self._index is not None:
            self._outer = current_device_index()
            set_device_index(self._index)

    def __exit__(self, *error):
        if self._index is not None:
            set_device_index(self._outer)


def current_stream(device=None, /):
    """The stream that ops are sent into: a session has one."""
    return cuda.current_stream(device)


def set_stream(stream):
    """Nothing: see current_stream()."""
    cuda.set_stream(stream)


def synchronize(device=None, /):
    """Waits until every op submitted so far is done."""
    cuda.synchronize(device)


def get_device_capability(device=None, /):
    """{"supported_dtypes": the element types that tensors there can have}"""
    from holdfast import dtypes

    cuda.need_gpu()
    return {"supported_dtypes": set(dtypes.NAMES.values())}


def _figure(function):
    """Of a function of torch.cuda: 0 where there is no accelerator."""

    def figure(device_index=None, /):
        return function(device_index) if is_available() else 0

    figure.__name__ = figure.__qualname__ = function.__name__
    figure.__doc__ = f"torch.cuda.{function.__name__}(); 0 without an accelerator."
    return figure


memory_allocated = _figure(memory.memory_allocated)
max_memory_allocated = _figure(memory.max_memory_allocated)
memory_reserved = _figure(memory.memory_reserved)
max_memory_reserved = _figure(memory.max_memory_reserved)


def memory_stats(device_index=None, /):
    """torch.cuda.memory_stats(); empty without an accelerator."""
    return OrderedDict(cuda.memory_stats(device_index) if is_available() else ())


def get_memory_info(device_index=None, /):
    """(free, total) bytes of the device. RuntimeError where there is none."""
    return cuda.mem_get_info(device_index)


def empty_cache():
    """Memory kept for reuse goes back to the device."""
    if is_available():
        cuda.empty_cache()


def empty_host_cache():
    """Nothing: a daemon keeps no pinned memory for reuse."""


def reset_peak_memory_stats(device_index=None, /):
    """The largest figures so far are forgotten."""
    if is_available():
        cuda.reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index=None, /):
    """Nothing: the daemon counts from its start."""


__getattr__ = module_getattr("torch.accelerator")
