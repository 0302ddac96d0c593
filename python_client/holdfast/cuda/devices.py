# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What there is to know of the session's GPU. RuntimeError where it has none."""

from types import SimpleNamespace

from holdfast import _C, _stats
from holdfast.memory import (
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
)


def is_available():
    """Whether the session's tensors live on a GPU; connects if need be."""
    return _C.default_session().device.startswith("cuda")


def need_gpu():
    """RuntimeError where the session has no GPU."""
    if not is_available():
        raise RuntimeError(
            "No CUDA GPUs are available: the daemon computes on "
            f"{_C.default_session().device}"
        )


def get_device_name(device=None):
    """The name by which the daemon calls the session's device."""
    need_gpu()
    return _C.default_session().device


def get_device_properties(device=None):
    """name, and total_memory in bytes: what one session may take of it."""
    need_gpu()
    return SimpleNamespace(name=get_device_name(), total_memory=_memory_limit())


def _memory_limit():
    return _stats.parse(_C.default_session()._stats())["memory_limit_bytes"]


def mem_get_info(device=None):
    """(free, total) bytes, of what the session may take."""
    need_gpu()
    total = _memory_limit()
    return max(total - memory_allocated(), 0), total


def memory_stats(device=None):
    """Bytes now and at most, by PyTorch's keys; {} without a GPU, as there."""
    if not is_available():
        return {}
    return {
        "allocated_bytes.all.current": memory_allocated(),
        "allocated_bytes.all.peak": max_memory_allocated(),
        "reserved_bytes.all.current": memory_reserved(),
    }
