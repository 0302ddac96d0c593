# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shows a running daemon's sessions, live: rates are those since the last look.

Ctrl-C ends it. Where the output is no terminal, each look is printed below the last.
"""

import itertools
import time

from holdfast.commands._daemon import add_address, address_of, fail, read_stats
from holdfast.commands._text import duration, size

HELP = "watch a running daemon's sessions"


_SORT = {
    "time": lambda row: -row["busy"],
    "memory": lambda row: -row["bytes_in_use"] - row["bytes_cached"],
    "ops": lambda row: -row["rate"],
    "id": lambda row: row["id"],
}


def add_arguments(parser):
    add_address(parser)
    parser.add_argument(
        "--interval",
        type=_interval,
        default=1.0,
        metavar="SECONDS",
        help="between two looks (default: 1)",
    )
    parser.add_argument(
        "--count", type=int, metavar="N", help="end after N looks (default: never)"
    )
    parser.add_argument(
        "--sort",
        choices=list(_SORT),
        default="time",
        help="what comes first (default: time, the device's)",
    )


def main(args):
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        return fail(
            "top draws with the package rich, which is not installed: "
            "apt-get install python3-rich, or pip install rich"
        )
    from holdfast.errors import HoldfastError

    console = Console()
    view = View(args.sort)
    try:
        live = Live(console=console, screen=console.is_terminal, auto_refresh=False)
        with live:
            for look in itertools.count() if args.count is None else range(args.count):
                if look:
                    time.sleep(args.interval)
                table = view.look(read_stats(address_of(args)), console.width)
                if console.is_terminal:
                    live.update(table, refresh=True)
                else:
                    console.print(table)
    except HoldfastError as error:
        return fail(str(error))
    except KeyboardInterrupt:
        pass
    return 0


_COLUMNS = (
    ("ID", lambda row: str(row["id"])),
    ("USER", lambda row: row.get("user") or "-"),  # of a daemon that knows users
    ("NAME", lambda row: row["name"] or "-"),
    ("CLIENT", lambda row: row["client"]),
    ("VIA", lambda row: row["transport"] if row["connected"] else "(away)"),
    ("DEVICE", lambda row: f"{100 * row['busy']:.0f} %"),
    ("OPS/S", lambda row: f"{row['rate']:,.0f}"),
    ("IN USE", lambda row: size(row["bytes_in_use"])),
    ("CACHED", lambda row: size(row["bytes_cached"])),
    ("QUEUED", lambda row: size(row["queued_bytes"])),
    ("TENSORS", lambda row: str(row["tensors"])),
)
_LEFT = ("ID", "USER", "NAME", "CLIENT", "VIA")
# What a narrow terminal does without, first to last.
_DISPENSABLE = ("CLIENT", "TENSORS", "CACHED", "QUEUED", "VIA", "OPS/S")


def _fitting(columns, width):
    """The columns (name: cells) that fit into `width` characters; None: all."""

    def needed():
        # Three blanks between neighbours, one at either edge.
        return sum(max(map(len, (name, *cells))) + 3 for name, cells in columns.items())

    for name in _DISPENSABLE:
        if width is None or needed() - 1 <= width:
            break
        del columns[name]
    return columns


class View:
    """Turns one StatsReply after the other into what the terminal shows."""

    def __init__(self, sort="time", clock=time.monotonic):
        self.own_id = None  # of a session that is not shown
        self.seen = {}  # session's id: (ops, device seconds) at the last look
        self._sort = _SORT[sort]
        self._clock = clock
        self._last = None

    def rows(self, stats):
        """The sessions, with ops per second and the part of the device's time."""
        now = self._clock()
        elapsed = now - self._last if self._last is not None else None
        rows = []
        for s in stats["sessions"]:
            if s["id"] == self.own_id:
                continue
            ops, seconds = self.seen.get(s["id"], (0, 0.0))
            first = elapsed is None
            rows.append(
                {
                    **s,
                    "rate": 0.0 if first else (s["ops"] - ops) / elapsed,
                    "busy": 0.0 if first else (s["device_seconds"] - seconds) / elapsed,
                }
            )
        self._last = now
        self.seen = {
            s["id"]: (s["ops"], s["device_seconds"]) for s in stats["sessions"]
        }
        return sorted(rows, key=self._sort)

    def look(self, stats, width=None):
        """What is shown; in `width` columns those that matter most, uncut."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        rows = self.rows(stats)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        columns = _fitting(
            {name: list(map(text, rows)) for name, text in _COLUMNS}, width
        )
        for name in columns:
            table.add_column(
                name, justify="left" if name in _LEFT else "right", no_wrap=True
            )
        for cells in zip(*columns.values(), strict=True):
            # Text: a client's name is no markup.
            table.add_row(*map(Text, cells))
        in_use = sum(row["bytes_in_use"] for row in rows)
        cached = sum(row["bytes_cached"] for row in rows)
        head = Text(
            f"{stats['server']} on {stats['device']}, up "
            f"{duration(stats['uptime_seconds'])}: {len(rows)} sessions, device "
            f"{100 * sum(row['busy'] for row in rows):.0f} % busy, "
            f"{sum(row['rate'] for row in rows):,.0f} ops/s, {size(in_use)} in use, "
            f"{size(cached)} cached"
        )
        return Group(head, table)


def _interval(text):
    seconds = float(text)
    if not 0.05 <= seconds <= 3600:
        raise ValueError
    return seconds
