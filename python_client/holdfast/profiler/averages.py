# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Averages of events, and the table that shows them."""

# What table(sort_by=...) takes: attributes of FunctionEventAvg.
SORT_KEYS = (
    "cpu_time",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "submit_time_total",
    "queue_time",
    "count",
)
# PyTorch's, of a device that is not the processor: there is none yet, so they
# sort by what the device did, which was the processor's work.
_CUDA_KEYS = {
    "cuda_time": "cpu_time",
    "cuda_time_total": "cpu_time_total",
    "self_cuda_time_total": "self_cpu_time_total",
    "cuda_memory_usage": "cpu_memory_usage",
    "self_cuda_memory_usage": "self_cpu_memory_usage",
    "device_time_total": "cpu_time_total",
    "self_device_time_total": "self_cpu_time_total",
}


class OnDevice:
    """PyTorch's figures of a device with kernels of its own; none yet."""

    cuda_time = cuda_time_total = self_cuda_time_total = 0
    cuda_memory_usage = self_cuda_memory_usage = 0


class FunctionEventAvg(OnDevice):
    """Sums over events of one name; times are µs. See FunctionEvent."""

    def __init__(self):
        self.key = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.submit_time_total = self.queue_time_total = 0.0
        self.is_user_annotation = False
        self.input_shapes = []
        self._queued = 0

    def add(self, event):
        """Counts an event, or another average."""
        if self.key is None:
            self.key = event.key
            self.is_user_annotation = event.is_user_annotation
            self.input_shapes = event.input_shapes
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.submit_time_total += event.submit_time_total
        if isinstance(event, FunctionEventAvg):
            self.queue_time_total += event.queue_time_total
            self._queued += event._queued
        elif event.submit_range is not None and not event.is_user_annotation:
            self.queue_time_total += event.queue_time
            self._queued += 1

    @property
    def cpu_time(self):
        """µs per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def queue_time(self):
        """µs that one waited on the daemon, of those that were submitted."""
        return self.queue_time_total / self._queued if self._queued else 0.0

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total:.3f}us "
            f"cpu_time={self.cpu_time:.3f}us>"
        )


def format_time(us):
    """ "12.000us", "3.400ms", "1.500s"."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def format_memory(count):
    """ "12 b", "3.40 Kb", "1.50 Gb"."""
    for unit, size in (("Gb", 1 << 30), ("Mb", 1 << 20), ("Kb", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} b"


def _clip(text, width):
    if width is None or len(text) <= width:
        return text
    return text[: max(0, width - 3)] + "..."


def table(
    events,
    sort_by=None,
    row_limit=100,
    header=None,
    profile_memory=False,
    dropped=0,
    max_src_column_width=None,
    max_name_column_width=55,
    max_shapes_column_width=80,
    top_level_events_only=False,
):
    """The text of EventList.table: one row per event, the largest first.

    row_limit -1: all. ValueError for a sort_by that is none of SORT_KEYS.
    """
    rows = list(events)
    total = sum(e.self_cpu_time_total for e in rows)
    submit = sum(e.submit_time_total for e in rows if not e.is_user_annotation)
    if top_level_events_only:
        rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
    if sort_by is not None:
        by = _CUDA_KEYS.get(sort_by, sort_by)
        if by not in SORT_KEYS:
            raise ValueError(
                f"[table] sort_by must be one of {', '.join(SORT_KEYS)}. Got "
                f"{sort_by!r}."
            )
        rows.sort(key=lambda e: getattr(e, by), reverse=True)
    if row_limit >= 0:
        rows = rows[:row_limit]
    shapes = any(e.input_shapes for e in rows)

    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total"]
    titles += ["CPU time avg"]
    if profile_memory:
        titles += ["CPU Mem", "Self CPU Mem"]
    titles += ["Submit total", "Queue avg", "# of Calls"]
    if shapes:
        titles += ["Input Shapes"]

    def percent(time):
        return f"{100 * time / total:.2f}%" if total else "0.00%"

    lines = []
    for e in rows:
        cells = [
            _clip(e.key, max_name_column_width),
            percent(e.self_cpu_time_total),
            format_time(e.self_cpu_time_total),
            percent(e.cpu_time_total),
            format_time(e.cpu_time_total),
            format_time(e.cpu_time),
        ]
        if profile_memory:
            cells += [
                format_memory(e.cpu_memory_usage),
                format_memory(e.self_cpu_memory_usage),
            ]
        cells += [
            format_time(e.submit_time_total),
            format_time(e.queue_time),
            str(e.count),
        ]
        if shapes:
            cells += [_clip(str(e.input_shapes), max_shapes_column_width)]
        lines.append(cells)

    widths = [max(len(row[i]) for row in [titles] + lines) for i in range(len(titles))]
    rule = "  ".join("-" * width for width in widths)
    text = [] if header is None else ["=" * len(rule), header]
    text += [rule]
    for i, row in enumerate([titles] + lines):
        text.append("  ".join(cell.rjust(w) for cell, w in zip(row, widths)))
        if i == 0:
            text.append(rule)
    text += [rule, f"Self CPU time total: {format_time(total)}"]
    text += [f"Submit time total: {format_time(submit)}"]
    if dropped:
        text += [f"{dropped} executions were dropped for want of room"]
    return "\n".join(text) + "\n"
