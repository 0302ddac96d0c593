# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Traces in Chrome's format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

Two processes on one clock: the client with its threads (ranges, submissions,
waits) and holdfastd with what it executed and how much waited there. Arrows go
from each submission to its execution, and from forward ops to the ops of their
gradients. GPUs, which work after the daemon has, have a row for each stream.
"""

import gzip
import json

from holdfast.profiler.recording import key

_EXECUTION = 1  # holdfastd's thread in the trace
# Chrome's format wants a number for holdfastd, whose own may be another
# machine's; process ids end far below.
_DAEMON = 1 << 23


def build(recording, metadata=None):
    """The trace of a Recording, a dict for JSON."""
    client = recording.pid
    began = recording.begin_ns
    events = []

    def us(ns):
        return round((ns - began) / 1e3, 3)

    def add(phase, name, pid, tid, **fields):
        events.append({"ph": phase, "name": name, "pid": pid, "tid": tid, **fields})

    def span(name, category, pid, tid, begin_ns, end_ns, **args):
        times = {"ts": us(begin_ns), "dur": round((end_ns - begin_ns) / 1e3, 3)}
        add("X", name, pid, tid, cat=category, args=args, **times)

    def arrow(category, number, begin, end):
        """From (pid, tid, ns) to (pid, tid, ns), each inside a span."""
        for phase, (pid, tid, ns), more in (("s", begin, {}), ("f", end, {"bp": "e"})):
            add(phase, category, pid, tid, cat=category, id=number, ts=us(ns), **more)

    session = recording.session
    names = {client: "client", _DAEMON: f"holdfastd ({session.server})"}
    for order, (pid, name) in enumerate(names.items()):
        add("M", "process_name", pid, 0, args={"name": name})
        add("M", "process_sort_index", pid, 0, args={"sort_index": order})
    add("M", "thread_name", _DAEMON, _EXECUTION, args={"name": "cpu execution"})
    threads = {s.thread for s in recording.submissions}
    for thread in sorted(threads | {r.thread for r in recording.ranges}):
        name = "main thread" if thread == client else f"thread {thread}"
        add("M", "thread_name", client, thread, args={"name": name})

    for r in recording.ranges:
        args = {} if r.args is None else {"args": str(r.args)}
        span(r.name, "user_annotation", client, r.thread, r.begin_ns, r.end_ns, **args)
    submitted = {}
    for s in recording.submissions:
        waits = s.kind == "wait"
        name = "wait for read" if waits else s.name
        category = "wait" if waits else "submit"
        span(
            name,
            category,
            client,
            s.thread,
            s.begin_ns,
            s.end_ns,
            sequence=s.sequence,
        )
        submitted[key(s)] = s

    forward, depth, arrows = {}, [], 0
    for e in recording.executions:
        s = None if e.in_backward else submitted.pop(key(e), None)
        args = {"sequence": e.sequence, "output bytes": e.output_bytes}
        if e.input_shapes:
            args["input shapes"] = e.input_shapes
        if e.failed:
            args["failed"] = True
        if e.in_backward and e.forward_sequence:
            args["forward sequence"] = e.forward_sequence
        if s is not None:
            args["queued us"] = max(0, e.start_ns - s.end_ns) / 1e3
        if e.waited_ns >= 0:
            args["waited on the daemon us"] = e.waited_ns / 1e3
        category = "backward" if e.in_backward else "execution"
        span(e.name, category, _DAEMON, _EXECUTION, e.start_ns, e.end_ns, **args)
        if s is not None:
            arrows += 1
            arrow(
                "submit",
                arrows,
                (client, s.thread, s.begin_ns),
                (_DAEMON, _EXECUTION, e.start_ns),
            )
            depth += [(s.end_ns, 1), (max(s.end_ns, e.start_ns), -1)]
        if e.kind == "op" and not e.in_backward:
            forward[e.sequence] = e
        elif e.in_backward and e.forward_sequence in forward:
            arrows += 1
            arrow(
                "fwdbwd",
                arrows,
                (_DAEMON, _EXECUTION, forward[e.forward_sequence].start_ns),
                (_DAEMON, _EXECUTION, e.start_ns),
            )
    streams = sorted({k.stream for k in recording.kernels})
    for row, stream in enumerate(streams, _EXECUTION + 1):
        add("M", "thread_name", _DAEMON, row, args={"name": stream})
        for k in recording.kernels:
            if k.stream == stream:
                times = (k.start_ns, k.end_ns)
                span(k.name, "kernel", _DAEMON, row, *times, sequence=k.sequence)
    waiting = 0
    for ns, change in sorted(depth, key=lambda d: (d[0], -d[1])):
        waiting += change
        add("C", "queue", _DAEMON, 0, ts=us(ns), args={"commands": waiting})

    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": began,
        "traceEvents": events,
        "otherData": {
            "server": session.server,
            "device": session.device,
            "transport": session.transport,
            "clock offset ns": recording.clock_offset_ns,
            "clock error ns": recording.clock_error_ns,
            "dropped submissions": recording.dropped_submissions,
            "dropped executions": recording.dropped_executions,
            "dropped kernels": recording.dropped_kernels,
            **(metadata or {}),
        },
    }


def write(path, recording, metadata=None):
    """Writes the trace; compressed where the path ends in .gz."""
    path = str(path)
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        json.dump(build(recording, metadata), file)
