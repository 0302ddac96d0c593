# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lists every session of a daemon with its user, to admins: root and the user that
runs the daemon over its Unix socket, others with an admin's token (HOLDFAST_TOKEN).
Others see their own."""

import json

from holdfast.commands._daemon import add_address, address_of, ask_admin, fail
from holdfast.commands._text import duration, print_table, size

HELP = "list the sessions, an admin all users'"


def add_arguments(parser):
    add_address(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args):
    from holdfast.errors import HoldfastError

    try:
        reply = ask_admin(address_of(args), "list_sessions")
    except HoldfastError as error:
        return fail(str(error))
    if args.json:
        print(json.dumps(reply["sessions"], indent=2))
        return 0
    rows = [
        (
            "ID",
            "USER",
            "NAME",
            "CLIENT",
            "VIA",
            "SHOWED",
            "IN USE",
            "RESERVED",
            "DEVICE TIME",
            "IDLE",
            "WEIGHT",
        )
    ]
    for s in reply["sessions"]:
        rows.append(
            (
                s["id"],
                s["user"],
                s["name"] or "-",
                s["client"],
                s["transport"] if s["connected"] else "(away)",
                s["credential"],
                size(int(s["bytes_in_use"])),
                size(int(s["bytes_reserved"])),
                f"{s['device_seconds']:.3f} s",
                duration(s["idle_seconds"]),
                f"{s['weight']:g}",
            )
        )
    print_table(rows)
    return 0
