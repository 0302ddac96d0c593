# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Named ranges of the program's own time."""

import functools
import threading
import time
from typing import NamedTuple


class Range(NamedTuple):
    """One range that has ended; times are nanoseconds of time.monotonic_ns()."""

    name: str
    args: object  # what the user gave with it, or None
    thread: int  # the system's id
    begin_ns: int
    end_ns: int


# Lists of ranges, one per profile that runs. Replaced, never changed, so that
# threads need no lock to go through it.
_listeners = ()
_lock = threading.Lock()


def listen():
    """A new list that gets every range from now on."""
    global _listeners
    ranges = []
    with _lock:
        _listeners += (ranges,)
    return ranges


def stop_listening(ranges):
    """The list gets no more."""
    global _listeners
    with _lock:
        _listeners = tuple(r for r in _listeners if r is not ranges)


class record_function:
    """Names the code in its block for profiles: a context manager and decorator.

    `name` and `args` (str or None) are shown with it. Costs nothing to speak of
    where no profile runs. Source: torch.profiler.record_function.
    """

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self._begins = []

    def __enter__(self):
        self._begins.append(time.monotonic_ns())
        return self

    def __exit__(self, *error):
        begin = self._begins.pop()
        if not _listeners:
            return
        ended = Range(
            self.name,
            self.args,
            threading.get_native_id(),
            begin,
            time.monotonic_ns(),
        )
        for ranges in _listeners:
            ranges.append(ended)

    def __call__(self, f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            # One of its own: f may run on several threads at once.
            with record_function(self.name, self.args):
                return f(*args, **kwargs)

        return wrapper
