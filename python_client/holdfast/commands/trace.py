# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finds what the daemon's log says about a session.

The trace id is in the session's errors ([trace ...]), in `holdfast status --json`
and on the daemon's web page; its first eight digits or more will do. A log in the
journal: journalctl -u holdfastd -o cat | holdfast trace ID -
"""

import json
import re
import sys

from holdfast.commands._daemon import fail

HELP = "find a session's lines in the daemon's log"
FEWEST_DIGITS = 8


def add_arguments(parser):
    parser.add_argument("id", help="the trace id, or how it begins")
    parser.add_argument(
        "log", nargs="+", help="files that holdfastd --log_file wrote; - is stdin"
    )


def main(args):
    wanted = args.id.lower()
    if not re.fullmatch(rf"[0-9a-f]{{{FEWEST_DIGITS},32}}", wanted):
        return fail(
            f"a trace id is 32 hexadecimal digits, of which {FEWEST_DIGITS} or more "
            f"must be given. Got '{args.id}'."
        )
    found = 0
    for name in args.log:
        try:
            for line in _lines(name):
                if _trace_id(line).startswith(wanted):
                    print(line)
                    found += 1
        except OSError as error:
            return fail(f"{name}: {error.strerror}")
    if not found:
        return fail(
            f"no line has trace id {wanted}. The session may be older than the log, or "
            "the daemon's --log_level above info."
        )
    return 0


def _lines(name):
    if name == "-":
        yield from map(str.rstrip, sys.stdin)
        return
    with open(name, encoding="utf-8", errors="replace") as log:
        yield from map(str.rstrip, log)


def _trace_id(line):
    """The line's trace id, or "" without one. It ends a line of text; before it may
    stand whatever a client chose as its name."""
    if line.startswith("{"):
        try:
            return str(json.loads(line).get("trace_id", ""))
        except ValueError:
            return ""
    match = re.search(r" trace_id=([0-9a-f]{32})$", line)
    return match.group(1) if match else ""
