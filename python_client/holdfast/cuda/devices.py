# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What there is to know of the session's GPU. RuntimeError where it has none."""

from typing import NamedTuple

from holdfast import _C, _stats, memory
from holdfast._device import device as _device


class DeviceProperties(NamedTuple):
    """A GPU as the daemon sees it. `total_memory` is in bytes; of a user whose
    sessions are limited, what one may take."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


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


def check_index(device):
    """RuntimeError unless `device` (None, an int, "cuda:0", a torch.device) is the
    session's one GPU."""
    need_gpu()
    if isinstance(device, str):
        device = _device(device)
    index = device if isinstance(device, int) else getattr(device, "index", None)
    if index not in (None, -1, 0):
        raise RuntimeError(
            f"invalid device ordinal {index}: a session has one GPU, cuda:0. "
            "Start a daemon with --device=cuda:N for another, and connect to it."
        )


def _ask():
    """(the device's properties, the limit of one session or 0)."""
    session = _C.default_session()
    stats = _stats.parse(session._stats())
    if not stats["device_properties"]:
        raise RuntimeError(
            f"{session.server} tells nothing of its GPU: it is of an older version "
            "than this package. Restart it with the same."
        )
    return stats["device_properties"][0], stats["memory_limit_bytes"]


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
    check_index(device)
    return properties_of(*_ask())


def get_device_name(device=None):
    """ "NVIDIA H200"."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """(major, minor), as (9, 0) on Hopper."""
    told = get_device_properties(device)
    return told.major, told.minor


def mem_get_info(device=None):
    """(free, total) bytes: of the GPU, or of what the session may take of it."""
    check_index(device)
    told, limit = _ask()
    free, total = told["free_bytes"], told["total_bytes"]
    if limit:
        free, total = min(free, max(limit - memory.memory_reserved(), 0)), limit
    return free, total


def memory_stats(device=None):
    """holdfast.memory_stats(); {} without a GPU, as in PyTorch."""
    return memory.memory_stats() if is_available() else {}


def memory_summary(device=None, abbreviated=False):
    """A table of what the session's tensors take."""
    stats = memory.memory_stats()
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
