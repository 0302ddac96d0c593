# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What there is to know of the daemon's GPUs. RuntimeError where it has none."""

from typing import NamedTuple

from holdfast import _C, _stats, memory


class DeviceProperties(NamedTuple):
    """A GPU as the daemon sees it. `total_memory` is in bytes; of a user whose
    sessions are limited, what one may take."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def is_available():
    """Whether the daemon has a GPU; connects if need be."""
    return _C.default_session().device_count > 0


def need_gpu():
    """RuntimeError where the session has no GPU."""
    if not is_available():
        raise RuntimeError(
            "No CUDA GPUs are available: the daemon computes on "
            f"{_C.default_session().device}"
        )


def index_of(device):
    """The index of a GPU: of `device` (an int, "cuda:1", a torch.device), the current
    one's for None or -1. RuntimeError where the daemon does not have it."""
    need_gpu()
    if device is None or device == -1:
        return _C.current_gpu()
    number = _C.device_number(device)
    if number == 0:
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return number - 1


def _ask(index):
    """(the GPU's properties, the limit of one session or 0)."""
    session = _C.default_session()
    stats = _stats.parse(session._stats())
    if len(stats["device_properties"]) <= index:
        raise RuntimeError(
            f"{session.server} tells nothing of its GPU: it is of an older version "
            "than this package. Restart it with the same."
        )
    return stats["device_properties"][index], stats["memory_limit_bytes"]


def properties_of(told, limit):
    """DeviceProperties from the daemon's figures."""
    total = told["total_bytes"]
    return DeviceProperties(
        told["name"],
        told["major"],
        told["minor"],
        min(total, limit) if limit else total,
        told["multi_processors"],
    )


def get_device_properties(device=None):
    """The GPU's DeviceProperties."""
    return properties_of(*_ask(index_of(device)))


def get_device_name(device=None):
    """ "NVIDIA H200"."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """(major, minor), as (9, 0) on Hopper."""
    told = get_device_properties(device)
    return told.major, told.minor


def mem_get_info(device=None):
    """(free, total) bytes: of the GPU, or of what the session may take of it."""
    index = index_of(device)
    told, limit = _ask(index)
    free, total = told["free_bytes"], told["total_bytes"]
    if limit:
        free, total = min(free, max(limit - memory.memory_reserved(index), 0)), limit
    return free, total


def memory_stats(device=None):
    """holdfast.memory_stats(); {} without a GPU, as in PyTorch."""
    return memory.memory_stats(device) if is_available() else {}


def memory_summary(device=None, abbreviated=False):
    """A table of what the session's tensors take."""
    stats = memory.memory_stats(device)
    rows = [
        ("allocated", "allocated_bytes.all.current", "allocated_bytes.all.peak"),
        ("reserved", "reserved_bytes.all.current", "reserved_bytes.all.peak"),
    ]
    lines = [f"{'memory, MiB':<14}{'now':>12}{'at most':>12}"]
    for name, now, peak in rows:
        lines.append(
            f"{name:<14}{stats[now] / 2**20:>12.1f}{stats[peak] / 2**20:>12.1f}"
        )
    lines.append(
        f"{stats['segment.all.current']} segments, "
        f"{stats['allocation.all.allocated']} allocations so far, "
        f"{stats['num_ooms']} refused"
    )
    return "\n".join(lines)
