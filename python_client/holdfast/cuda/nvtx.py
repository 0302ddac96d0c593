# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda.nvtx: ranges that a profile shows, as profiler.record_function's are."""

import contextlib
import threading

from holdfast.profiler import record_function


class _Open(threading.local):
    def __init__(self):
        self.ranges = []


_open = _Open()


def range_push(msg):
    """Begins a range; returns how many were open before it."""
    entered = record_function(msg)
    entered.__enter__()
    _open.ranges.append(entered)
    return len(_open.ranges) - 1


def range_pop():
    """Ends the last range of this thread; returns how many are left open, -1 where
    there was none."""
    if not _open.ranges:
        return -1
    _open.ranges.pop().__exit__(None, None, None)
    return len(_open.ranges)


def mark(msg):
    """A range without length."""
    with record_function(msg):
        pass


@contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A context, or decorator, that is a range called msg.format(*args, **kwargs)."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
