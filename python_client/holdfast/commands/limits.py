# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shows what users may take of a daemon, and sets it while it runs: until the daemon
ends, above its configuration (holdfastd --config). For admins; others see their own.

holdfast limits                            all users
holdfast limits --user alice --memory 8GiB --weight 2
holdfast limits --default --max-sessions 4
holdfast limits --user alice --reset       back to the configuration
"""

import argparse
import json
import re
import sys

from holdfast.commands._daemon import add_address, address_of, ask_admin, fail
from holdfast.commands._text import print_table, size

HELP = "show what users may take, and set it (admin)"

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{p}B": 1000**i for i, p in enumerate("KMGT", 1)},
    **{f"{p}iB": 1024**i for i, p in enumerate("KMGT", 1)},
}
# Option -> (field of Limits, type, help).
_OPTIONS = {
    "memory": ("memory_bytes", "bytes", "of all sessions of the user together"),
    "memory-share": (
        "memory_share_bytes",
        "bytes",
        "above this memory is given only while the device has room",
    ),
    "session-memory": ("session_memory_bytes", "bytes", "of one session"),
    "weight": ("weight", "float", "share of device time, 0.01 to 100"),
    "max-sessions": ("max_sessions", "int", "open at a time"),
    "idle-seconds": ("idle_seconds", "float", "a session ends after so long idle"),
    "max-handles": ("max_handles", "int", "tensors that one session holds"),
    "max-graph-nodes": (
        "max_graph_nodes",
        "int",
        "recorded ops that one session's graphs hold",
    ),
    "max-names": ("max_names", "int", "published at a time"),
    "max-connections": (
        "max_connections",
        "int",
        "local programs connected at a time",
    ),
    "op-seconds": ("op_seconds", "float", "an op that takes longer is stopped"),
}


def parse_size(text):
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2] not in _UNITS:
        raise argparse.ArgumentTypeError(
            f"a size is a number with a unit, such as 512MiB or 8GiB, or 0 for no "
            f"limit. Got {text!r}"
        )
    return round(float(match[1]) * _UNITS[match[2]])


def add_arguments(parser):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_address(parser)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--user", help="whose limits to set")
    who.add_argument("--default", action="store_true", help="set everybody's")
    parser.add_argument("--reset", action="store_true", help="drop what was set")
    parser.add_argument("--json", action="store_true", help="print JSON")
    types = {"bytes": parse_size, "float": float, "int": int}
    for option, (_, kind, text) in _OPTIONS.items():
        parser.add_argument(
            f"--{option}", type=types[kind], help=f"{text}; 0: no limit"
        )


def main(args):
    from holdfast.errors import HoldfastError

    limits = {}
    for option, (field, _, _) in _OPTIONS.items():
        value = getattr(args, option.replace("-", "_"))
        if value is not None:
            limits[field] = value
    if any(value < 0 for value in limits.values()):
        return fail(f"limits are not negative. Got {limits}.")
    sets = bool(limits) or args.reset
    if sets and not (args.user or args.default):
        return fail("whose limits? Give --user NAME, or --default for everybody's.")
    try:
        if sets:
            reply = ask_admin(
                address_of(args),
                "set_limits",
                user=args.user or "",
                limits=limits,
                reset=args.reset,
            )
        else:
            reply = ask_admin(address_of(args), "list_users")
    except HoldfastError as error:
        return fail(str(error))
    if args.user:
        reply["users"] = [u for u in reply["users"] if u["name"] == args.user]
    if sets and args.user and not any(int(u["sessions"]) for u in reply["users"]):
        # Perhaps a name with a typo: users come and go, so it is no error.
        print(
            f"holdfast: {args.user} has no session now; the limits are for the next.",
            file=sys.stderr,
        )
    if args.json:
        print(json.dumps(reply, indent=2))
        return 0
    _show(reply)
    return 0


def _show(reply):
    header = ("USER", "ROLE", "SESSIONS", "RESERVED", "MEMORY", "SHARE")
    rows = [
        (
            *(*header, "PER SESSION", "WEIGHT", "MAX SESSIONS", "IDLE", "OP TIME"),
            *("HANDLES", "GRAPH", "NAMES", "CONNECTIONS"),
        )
    ]
    for user in reply["users"]:
        rows.append(
            (
                user["name"],
                user["role"],
                user["sessions"],
                size(int(user["bytes_reserved"])),
                *limits_text(user["limits"]),
            )
        )
    if not reply.get("default_limits"):  # to one who is no admin
        return print_table(rows)
    rows.append(("(default)", "", "", "", *limits_text(reply["default_limits"])))
    print_table(rows)
    total = int(reply["device_bytes"])
    print(
        f"device: {size(int(reply['device_bytes_reserved']))} reserved"
        + (f" of {size(total)}" if total else "")
    )


def limits_text(limits):
    """One text for each of Limits' fields, as the table's columns have them."""

    def bound(field, text):
        value = float(limits.get(field, 0))
        return text(value) if value else "-"

    return (
        bound("memory_bytes", size),
        bound("memory_share_bytes", size),
        bound("session_memory_bytes", size),
        f"{limits.get('weight', 1):g}",
        bound("max_sessions", lambda n: f"{n:.0f}"),
        bound("idle_seconds", lambda s: f"{s:g} s"),
        bound("op_seconds", lambda s: f"{s:g} s"),
        *(
            bound(field, lambda n: f"{n:.0f}")
            for field in (
                "max_handles",
                "max_graph_nodes",
                "max_names",
                "max_connections",
            )
        ),
    )
