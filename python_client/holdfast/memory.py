# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How much memory the session's tensors take, by torch.cuda's names.

All of these wait for what was submitted before, and count bytes of the
allocator's blocks: sizes rounded up to 512.
"""

from holdfast import _C, _stats
from holdfast._registry import function


def _mine():
    session = _C.default_session()
    session.synchronize()
    for stats in _stats.parse(session._stats())["sessions"]:
        if stats["id"] == session.id:
            return stats
    raise RuntimeError("the daemon does not list this session")


@function
def memory_allocated(device=None):
    """Bytes of the session's tensors, saved ones included."""
    return _mine()["bytes_in_use"]


@function
def max_memory_allocated(device=None):
    """The most that memory_allocated() was since the last reset."""
    return _mine()["peak_bytes_in_use"]


@function
def memory_reserved(device=None):
    """Bytes that the session holds, in use or kept for reuse."""
    stats = _mine()
    return stats["bytes_in_use"] + stats["bytes_cached"]


@function
def reset_peak_memory_stats(device=None):
    """max_memory_allocated() starts again from what is in use now."""
    _C.default_session()._reset_peak_memory()
