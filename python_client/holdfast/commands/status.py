# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shows a running daemon, who you are to it, and your sessions (admins: everybody's)
with, for admins, your own limits."""

import json

from holdfast.commands._daemon import (
    add_address,
    address_of,
    ask_admin,
    fail,
    read_stats,
    whoami,
)
from holdfast.commands.limits import limits_text
from holdfast.commands._text import duration, print_table, size

HELP = "show a running daemon's sessions"


def add_arguments(parser):
    add_address(parser)
    parser.add_argument("--ops", action="store_true", help="show op counts too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args):
    from holdfast.errors import HoldfastError

    address = address_of(args)
    try:
        reply = read_stats(address)
        reply["you"] = whoami(address)
        reply["you"]["limits"] = _own_limits(address, reply["you"]["name"])
    except HoldfastError as error:
        return fail(f"{error}{_how_to_start(address)}")
    if args.json:
        print(json.dumps(reply, indent=2))
        return 0
    print(
        f"{reply['server']} on {reply['device']} at {address}, "
        f"up {duration(reply['uptime_seconds'])}"
    )
    print(_you(reply["you"]))
    _print_own(address)
    print_table(_session_rows(reply["sessions"]))
    if args.ops:
        print()
        print_table(_op_rows(reply["ops"]))
    return 0


def _how_to_start(address):
    """Advice where the daemon of this machine is meant and none runs."""
    from holdfast.service import places

    own = address == f"unix:{places.own_socket()}"
    return " Your own starts with: holdfast start" if own else ""


def _print_own(address):
    """Of the daemon that `holdfast start` started: where its files are."""
    from holdfast.service import own_daemon, own_lock, places

    owner = own_lock.owner()
    if owner and address == f"unix:{owner['socket']}":
        how = "a unit of systemd" if owner["unit"] else f"process {owner['pid']}"
        flags = f", {' '.join(owner['flags'])}" if owner["flags"] else ""
        print(
            f"it is yours ({how}{flags}); log {own_daemon.log_file()}, "
            f"state {places.state_folder()}"
        )


def _own_limits(address, name):
    """The limits that hold for the user `name`."""
    reply = ask_admin(address, "list_users")
    for user in reply["users"]:
        if user["name"] == name:
            return user["limits"]
    return reply["default_limits"]


def _you(you):
    line = f"you are {you['name']}, {you['role']}"
    titles = ("memory", "share", "per session", "weight", "max sessions", "idle", "op")
    # Those that count what a program holds are for `holdfast limits`.
    limits = zip(titles, limits_text(you["limits"])[: len(titles)], strict=True)
    shown = [f"{title} {text}" for title, text in limits if text != "-"]
    return f"{line}; limits: {', '.join(shown)}"


def _session_rows(sessions):
    rows = [("ID", "NAME", "CLIENT", "VIA", "TENSORS", "IN USE", "OPS", "DEVICE TIME")]
    for s in sessions:
        rows.append(
            (
                str(s["id"]),
                s["name"] or "-",
                s["client"],
                s["transport"] if s["connected"] else "(away)",
                str(s["tensors"]),
                size(s["bytes_in_use"]),
                str(s["ops"]),
                f"{s['device_seconds']:.3f} s",
            )
        )
    return rows


def _op_rows(ops):
    rows = [("OP", "CALLS", "FAILED", "SECONDS")]
    for op in sorted(ops, key=lambda op: -op["seconds"]):
        rows.append(
            (op["name"], str(op["calls"]), str(op["failures"]), f"{op['seconds']:.3f}")
        )
    return rows
