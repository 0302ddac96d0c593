# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda's streams and events. A session has one stream: every op runs in the
order it was sent, so a stream is a name for it and waiting for another is nothing."""

import contextlib
import time

from holdfast import _C


def _wait():
    session = _C.current_session()
    if session is not None:
        session.synchronize()


class Stream:
    """The session's stream, whichever it is called."""

    def __init__(self, device=None, priority=0, **options):
        self.priority = priority

    def synchronize(self):
        """Waits until every op submitted so far is done."""
        _wait()

    def wait_stream(self, stream):
        """Nothing: ops run in the order they were sent."""

    def wait_event(self, event):
        """Nothing: ops run in the order they were sent."""

    def record_event(self, event=None):
        """`event`, or a new one, recorded."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self):
        """True, after waiting for the ops submitted so far."""
        _wait()
        return True


class Event:
    """A point in the stream. record() waits for what was sent before it, so that
    elapsed_time() counts what the device did."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self._seconds = None

    def record(self, stream=None):
        """Notes the time when every op submitted so far is done."""
        _wait()
        self._seconds = time.perf_counter()

    def synchronize(self):
        """Nothing: record() waited."""

    def wait(self, stream=None):
        """Nothing: ops run in the order they were sent."""

    def query(self):
        """True: record() waited."""
        return True

    def elapsed_time(self, end_event):
        """Milliseconds from this event to the other. RuntimeError if one of them
        was not recorded."""
        if self._seconds is None or end_event._seconds is None:
            raise RuntimeError("Both events must be recorded before elapsed_time()")
        return (end_event._seconds - self._seconds) * 1e3


_stream = Stream()


def current_stream(device=None):
    """The session's stream."""
    return _stream


default_stream = current_stream


def set_stream(stream):
    """Nothing: there is one."""


@contextlib.contextmanager
def stream(stream):
    """Context manager that changes nothing."""
    yield
