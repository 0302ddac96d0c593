# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How much memory the session's tensors take, by torch.cuda's names.

All of these wait for what was submitted before, and count bytes of the
allocator's blocks: sizes rounded up to 512. `device`: one of several GPUs, None
for the current one (cuda.set_device). Tensors of "cpu" lie on the first.
"""

from holdfast import _C, _stats
from holdfast._registry import function


def _mine(blocks=False):
    session = _C.default_session()
    session.synchronize()
    told = session._memory_stats() if blocks else session._stats()
    for stats in _stats.parse(told)["sessions"]:
        if stats["id"] == session.id:
            return stats
    raise RuntimeError("the daemon does not list this session")


def _index_of(device):
    """The GPU's index; 0 on a daemon without GPUs."""
    if _C.default_session().device_count < 2:
        return 0
    if device is None:
        return _C.current_gpu()
    return max(_C.device_number(device) - 1, 0)


def _on(device):
    """Figures of one device."""
    mine, index = _mine(), _index_of(device)
    if not mine["devices"]:
        return mine
    for stats in mine["devices"]:
        if stats["device"] == index:
            return {**mine, **stats}
    return {**mine, **dict.fromkeys(_FIGURES, 0)}


_FIGURES = (
    "bytes_in_use",
    "bytes_cached",
    "peak_bytes_in_use",
    "peak_bytes_held",
    "allocations",
    "segments",
)


@function
def memory_allocated(device=None):
    """Bytes of the session's tensors, saved ones included."""
    return _on(device)["bytes_in_use"]


@function
def max_memory_allocated(device=None):
    """The most that memory_allocated() was since the last reset."""
    return _on(device)["peak_bytes_in_use"]


@function
def memory_reserved(device=None):
    """Bytes that the session holds, in use or kept for reuse."""
    stats = _on(device)
    return stats["bytes_in_use"] + stats["bytes_cached"]


def max_memory_reserved(device=None):
    """The most that memory_reserved() was since the last reset."""
    return _on(device)["peak_bytes_held"]


def empty_cache():
    """Gives memory that the session keeps for reuse back to the device, once what
    was submitted is done. Rarely needed: under pressure the daemon does it."""
    session = _C.current_session()
    if session is not None:
        session._release_memory()


def memory_stats(device=None):
    """The session's figures, a dict by PyTorch's keys: bytes allocated and reserved,
    now (`current`) and at most (`peak`), segments and allocations."""
    mine = _on(device)
    reserved = mine["bytes_in_use"] + mine["bytes_cached"]
    return {
        "allocated_bytes.all.current": mine["bytes_in_use"],
        "allocated_bytes.all.peak": mine["peak_bytes_in_use"],
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": mine["peak_bytes_held"],
        "inactive_split_bytes.all.current": mine["bytes_cached"],
        "segment.all.current": mine["segments"],
        "allocation.all.allocated": mine["allocations"],
        "num_ooms": mine["refused_allocations"],
    }


_STATES = ("inactive", "active_allocated", "active_pending_free")


def _blocks(segment, address):
    columns = (segment[f"block_{name}"] for name in ("bytes", "requested", "states"))
    for size, requested, state in zip(*columns, strict=True):
        yield {
            "address": address,
            "size": size,
            "requested_size": requested,
            "state": _STATES[state],
        }
        address += size


def _segment(segment):
    # Where it lies is the daemon's own affair: addresses are those of a session whose
    # segments are numbered, each far from the next.
    address = segment["id"] << 40
    blocks = list(_blocks(segment, address))
    sizes = {name: 0 for name in _STATES}
    for block in blocks:
        sizes[block["state"]] += block["size"]
    return {
        "device": segment["device"],
        "address": address,
        "total_size": segment["bytes"],
        "allocated_size": sizes["active_allocated"],
        "active_size": segment["bytes"] - sizes["inactive"],
        "stream": 0,
        "segment_type": "small" if segment["small"] else "large",
        "blocks": blocks,
    }


def memory_snapshot():
    """The session's segments of device memory, each a dict by PyTorch's keys with the
    blocks that tile it, in order: sizes in bytes, `state` "active_allocated",
    "inactive" (kept for reuse) or "active_pending_free"."""
    return [_segment(segment) for segment in _mine(blocks=True)["memory"]]


@function
def reset_peak_memory_stats(device=None):
    """max_memory_allocated() and max_memory_reserved() start again from now."""
    _C.default_session()._reset_peak_memory()
