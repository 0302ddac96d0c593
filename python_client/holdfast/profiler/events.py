# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Events of a profile: what a recording says, as PyTorch's FunctionEvent."""

from typing import NamedTuple

from holdfast.errors import UnsupportedError
from holdfast.profiler import averages, chrome_trace
from holdfast.profiler.recording import key


class Interval(NamedTuple):
    """Microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self):
        return self.end - self.start


class FunctionEvent(averages.OnDevice):
    """An op, put, read or backward that the daemon ran, or a range.

    name             the op's; with "_" in place.
    time_range       Interval of its execution; of a range: in the program.
    submit_range     Interval of the call that submitted it; None: unknown, or
                     an op inside a backward. A read's lasts until its value is
                     there.
    queue_time       µs between submission and execution.
    sequence_nr      number of the command; inside a backward that of the
                     forward op; -1: none.
    thread           the system's id of the submitting thread, 0: none.
    cpu_time_total   µs of execution. A range's, and so a step's: of all that it
                     submitted.
    cpu_memory_usage bytes that outputs took, likewise.
    input_shapes     [[int]], with record_shapes.
    cpu_parent, cpu_children   a range around it, the backward it is part of.
    """

    def __init__(self, name, time_range, thread=0, sequence=-1):
        self.id = 0
        self.name = self.key = self.trace_name = name
        self.time_range = time_range
        self.submit_range = None
        self.queue_time = 0.0
        self.thread = self.fwd_thread = thread
        self.sequence_nr = sequence
        self.count = 1
        self.is_user_annotation = False
        self.is_backward = False
        self.failed = False
        self.input_shapes = []
        self.cpu_parent = None
        self.cpu_children = []
        self.own_time = 0.0  # of executions, children's included
        self.own_bytes = 0

    @property
    def cpu_time_total(self):
        if self.is_user_annotation:
            return sum(child.cpu_time_total for child in self.cpu_children)
        return self.own_time

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self):
        inside = sum(child.cpu_time_total for child in self.cpu_children)
        return max(0.0, self.cpu_time_total - inside)

    @property
    def self_cpu_memory_usage(self):
        return self.own_bytes

    @property
    def cpu_memory_usage(self):
        inside = sum(child.cpu_memory_usage for child in self.cpu_children)
        return self.own_bytes + inside

    @property
    def submit_time_total(self):
        return 0.0 if self.submit_range is None else self.submit_range.elapsed_us()

    def __repr__(self):
        return (
            f"<FunctionEvent name={self.name} cpu_time={self.cpu_time_total:.3f}us "
            f"queue_time={self.queue_time:.3f}us sequence_nr={self.sequence_nr} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


class EventList(list):
    """FunctionEvents in the order of their beginnings, or averages of them."""

    def __init__(self, events=(), recording=None, profile_memory=False):
        super().__init__(events)
        self._recording = recording
        self._profile_memory = profile_memory

    @property
    def self_cpu_time_total(self):
        """µs that the daemon executed."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """The events by name (and shapes), an EventList of FunctionEventAvg."""
        if group_by_stack_n:
            raise UnsupportedError(
                "holdfast has no key_averages(group_by_stack_n=...); a profile "
                "holds no stacks."
            )
        groups = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            group = groups.setdefault(
                (event.key, event.is_user_annotation, shapes),
                averages.FunctionEventAvg(),
            )
            group.add(event)
        if not group_by_input_shape:
            for group in groups.values():
                group.input_shapes = []
        return EventList(groups.values(), self._recording, self._profile_memory)

    def total_average(self):
        """All events in one FunctionEventAvg named "Total"."""
        total = averages.FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        total.input_shapes = []
        return total

    def table(self, sort_by=None, row_limit=100, header=None, **widths):
        """The events as text; sort_by: see averages.SORT_KEYS."""
        dropped = self._recording.dropped_executions if self._recording else 0
        return averages.table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            header=header,
            profile_memory=self._profile_memory,
            dropped=dropped,
            **widths,
        )

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path):
        """Writes the trace of the whole profile; see profile."""
        if self._recording is None:
            raise RuntimeError("these events are not of a profile")
        chrome_trace.write(path, self._recording)


def build(recording, profile_memory=False):
    """The EventList of a Recording that has stopped."""
    began = recording.begin_ns

    def interval(begin_ns, end_ns):
        return Interval((begin_ns - began) / 1e3, (end_ns - began) / 1e3)

    submissions = {key(s): s for s in recording.submissions}
    events, by_command, parts = [], {}, []
    for e in recording.executions:
        if e.in_backward:
            parts.append(e)
            continue
        event = by_command.get(key(e))
        if event is not None:  # a further stretch of a backward
            start = event.time_range.start
            event.time_range = Interval(start, interval(0, e.end_ns).end)
            event.own_time += e.duration_ns / 1e3
            continue
        event = FunctionEvent(e.name, interval(e.start_ns, e.end_ns))
        by_command[key(e)] = event
        event.sequence_nr = e.sequence if e.kind != "read" else -1
        _fill(event, e)
        submission = submissions.get(key(e))
        if submission is not None:
            event.thread = event.fwd_thread = submission.thread
            wait = submissions.get(("wait", e.sequence)) if e.kind == "read" else None
            last = submission if wait is None else wait
            event.submit_range = interval(submission.begin_ns, last.end_ns)
            event.queue_time = max(0, e.start_ns - submission.end_ns) / 1e3
        events.append(event)
    threads = {e.sequence_nr: e.thread for e in events}
    for e in parts:
        event = FunctionEvent(e.name, interval(e.start_ns, e.end_ns))
        event.is_backward = True
        event.sequence_nr = e.forward_sequence or -1
        event.fwd_thread = threads.get(e.forward_sequence, 0)
        _fill(event, e)
        _adopt(by_command.get(("command", e.sequence)), event)
        events.append(event)
    ranges = []
    for r in recording.ranges:
        event = FunctionEvent(r.name, interval(r.begin_ns, r.end_ns), r.thread)
        event.is_user_annotation = True
        event.submit_range = event.time_range
        ranges.append(event)
    _nest(ranges, by_command.values())
    events = sorted(events + ranges, key=lambda event: event.time_range.start)
    for i, event in enumerate(events):
        event.id = i
    return EventList(events, recording, profile_memory)


def _fill(event, execution):
    event.own_time = execution.duration_ns / 1e3
    event.own_bytes = execution.output_bytes
    event.input_shapes = execution.input_shapes
    event.failed = execution.failed


def _adopt(parent, child):
    if parent is not None:
        child.cpu_parent = parent
        parent.cpu_children.append(child)


def _nest(ranges, commands):
    """Ranges, and what was submitted, into the innermost range around them."""
    submitted = [c for c in commands if c.submit_range is not None]
    # Of two that begin together the longer one is outside.
    order = sorted(
        ranges + submitted, key=lambda e: (e.submit_range.start, -e.submit_range.end)
    )
    open_ranges = {}  # by thread, the outermost first
    for event in order:
        stack = open_ranges.setdefault(event.thread, [])
        while stack and stack[-1].submit_range.end <= event.submit_range.start:
            stack.pop()
        if stack:
            _adopt(stack[-1], event)
        if event.is_user_annotation:
            stack.append(event)
