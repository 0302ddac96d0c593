# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The profiler that programs use, by PyTorch's name and arguments."""

import json
import os
import socket
import time
import warnings

from holdfast.errors import UnsupportedError
from holdfast.profiler import chrome_trace, events
from holdfast.profiler.ranges import record_function
from holdfast.profiler.recording import Recording
from holdfast.profiler.schedule import ProfilerAction, ProfilerActivity, always

_NONE, _WARMUP, _RECORD, _SAVE = ProfilerAction


def warn_of_missing(**wanted):
    """Says which of the asked-for details a profile does not hold."""
    names = [name for name, value in wanted.items() if value]
    if names:
        warnings.warn(
            f"holdfast's profiler takes {', '.join(names)} and does not record it.",
            stacklevel=3,
        )


class profile:
    """Records one session of this program; a context manager.

    activities      accepted; the program and the daemon are always recorded.
    schedule        a function from the step's number to a ProfilerAction, see
                    schedule(); call step() after each. None: all is recorded.
    on_trace_ready  called with the profile when a recording is complete.
    record_shapes   with the shapes of inputs.
    profile_memory  the table shows what outputs took.
    with_stack, with_flops, with_modules   accepted with a warning.
    session         a holdfast.Session; None: the default one. A session has one
                    profile at a time: RuntimeError.
    max_records     executions and submissions to keep, each; later ones are
                    counted and dropped. 0: about half a million.

    Ending a recording waits until the daemon has done all that was submitted.
    Source: torch.profiler.profile.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        use_cuda=None,
        session=None,
        max_records=0,
    ):
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(
                    "[profile] activities must be ProfilerActivity. Got "
                    f"{activity!r}."
                )
        if schedule is not None and not callable(schedule):
            raise TypeError(f"[profile] schedule must be a function. Got {schedule!r}.")
        if max_records < 0:
            raise ValueError(
                f"[profile] max_records must be at least 0. Got {max_records}."
            )
        warn_of_missing(
            with_stack=with_stack, with_flops=with_flops, with_modules=with_modules
        )
        self.activities = set(activities or ProfilerActivity.supported())
        self.schedule = schedule or always
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._record_steps = schedule is not None
        self._session = session
        self._max_records = max_records
        self._step_range = None
        self._running = None  # the Recording under way
        self._recording = None  # the latest complete one
        self._events = None
        self._metadata = {}

    # ---- running

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, error_type, error, traceback):
        if error is None:
            self.stop()
            return
        # The block's own error is the one to tell.
        try:
            self.stop()
        except Exception:
            self._running = None

    def start(self):
        """Begins, as entering the block does. RuntimeError if it has begun."""
        if self._running is not None:
            raise RuntimeError("[profile] a profile must not run twice. Got start().")
        self._enter(self.current_action)
        self._begin_step()

    def stop(self):
        """Ends, as leaving the block does; a recording under way is complete.

        Nothing happens where none is.
        """
        self._end_step()
        recorded = self._running is not None
        self._end_recording()
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self):
        """The program's next step begins; the schedule says what it means."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        after = self.current_action
        if before is _SAVE:
            self._end_recording()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif (before is _RECORD and after in (_NONE, _WARMUP)) or (
            before is _WARMUP and after is _NONE
        ):
            warnings.warn(
                f"Incorrect schedule: {before.name} followed by {after.name}",
                stacklevel=2,
            )
            self._end_recording()
        self._enter(after)
        self._begin_step()

    def _enter(self, action):
        if action in (_RECORD, _SAVE) and self._running is None:
            recording = Recording(self._session, self.record_shapes, self._max_records)
            recording.start()
            self._running = recording

    def _end_recording(self):
        if self._running is None:
            return
        running, self._running = self._running, None
        self._events = None
        self._recording = running.stop()

    def _begin_step(self):
        if self._record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _end_step(self):
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    # ---- results

    def _complete(self):
        if self._recording is None:
            raise AssertionError(
                "[profile] a recording must be complete. Got a profile that "
                "recorded nothing yet; call it after the block, or in "
                "on_trace_ready."
            )
        return self._recording

    def events(self):
        """The latest recording's EventList: executions and ranges."""
        recording = self._complete()
        if self._events is None:
            self._events = events.build(recording, self.profile_memory)
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """events() by name; `.table(sort_by=..., row_limit=...)` shows them."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path):
        """Writes a trace for ui.perfetto.dev; .gz compresses it."""
        chrome_trace.write(path, self._complete(), self._metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Not supported: a profile holds no stacks."""
        raise UnsupportedError(
            "holdfast has no profile.export_stacks; a profile holds no stacks."
        )

    def add_metadata(self, key, value):
        """A string that the trace will hold."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """A JSON text that the trace will hold as what it means."""
        self._metadata[key] = json.loads(value)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An on_trace_ready that writes each trace to a file of its own in dir_name.

    Source: torch.profiler.tensorboard_trace_handler.
    """

    def write(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns() // 1_000_000}.pt.trace.json"
        path = os.path.join(dir_name, name + (".gz" if use_gzip else ""))
        prof.export_chrome_trace(path)

    return write
