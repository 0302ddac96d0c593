# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A recording: the raw times of one session and this program."""

import os
import time
from typing import NamedTuple

from holdfast import _C
from holdfast.profiler import ranges


class Submission(NamedTuple):
    """A call of this program: it sent a command, or waited for a read."""

    kind: str  # "op", "put", "backward", "read", "wait"
    name: str
    sequence: int  # ties it to its execution; reads count apart
    thread: int
    begin_ns: int
    end_ns: int


class Execution(NamedTuple):
    """What the daemon ran: a command, a stretch of a backward, or an op in it."""

    kind: str  # "op", "put", "backward", "read"
    name: str
    sequence: int  # of an op inside a backward: the backward's
    forward_sequence: int  # inside a backward: the op whose gradient it is for
    in_backward: bool
    failed: bool
    start_ns: int
    duration_ns: int
    waited_ns: int  # between arrival and start; -1: not known
    output_bytes: int
    input_shapes: list

    @property
    def end_ns(self):
        return self.start_ns + self.duration_ns


class Kernel(NamedTuple):
    """What a GPU did, after the op that asked for it."""

    name: str  # the op's; "recording", "fused", "upload", "download"
    stream: str  # "cuda:0", "cuda:0 upload", "cuda:0 download", "cuda:1"
    sequence: int  # of the command; inside a backward the backward's
    start_ns: int
    duration_ns: int

    @property
    def end_ns(self):
        return self.start_ns + self.duration_ns


def key(record):
    """What a submission and its execution have in common."""
    if record.kind in ("read", "wait"):
        return record.kind, record.sequence
    return "command", record.sequence


class Recording:
    """Records from start() to stop(); then it holds what happened.

    Times are nanoseconds of time.monotonic_ns(). `session` None: the default
    session, which is opened if need be. RuntimeError where the session is being
    profiled already or has ended.
    """

    def __init__(self, session=None, shapes=False, max_records=0):
        self.session = _C.default_session() if session is None else session
        self._shapes = shapes
        self._max_records = max_records
        self.pid = os.getpid()
        self.submissions = []
        self.executions = []
        self.kernels = []  # of devices that work after the command
        self.ranges = []
        self.begin_ns = self.end_ns = 0
        self.dropped_submissions = self.dropped_executions = self.dropped_kernels = 0
        self.clock_offset_ns = self.clock_error_ns = 0

    def start(self):
        self.session._start_profile(self._shapes, self._max_records)
        self.begin_ns = time.monotonic_ns()
        self._listening = ranges.listen()

    def stop(self):
        """Waits until everything submitted is done, on GPUs, too."""
        ranges.stop_listening(self._listening)
        self.end_ns = time.monotonic_ns()
        raw = self.session._stop_profile()
        self.ranges = [r for r in self._listening if r.begin_ns >= self.begin_ns]
        self.executions = [Execution(*e) for e in raw.pop("executions")]
        self.kernels = [Kernel(*k) for k in raw.pop("kernels")]
        submissions = [Submission(*s) for s in raw.pop("submissions")]
        self.__dict__.update(raw)
        begun = {}
        for execution in self.executions:
            begun.setdefault(key(execution), execution.start_ns)
        # The daemon may begin a command while the call that sent it returns:
        # the command was submitted by then.
        for i, s in enumerate(submissions):
            start = begun.get(key(s))
            if start is not None and s.begin_ns <= start < s.end_ns:
                submissions[i] = s._replace(end_ns=start)
        self.submissions = submissions
        return self
