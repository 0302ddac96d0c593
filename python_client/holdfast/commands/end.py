# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ends a session of your own, by its name or its number (holdfast status): its tensors
go. One that a program uses is ended with --force only; the program is told who did
it."""

from holdfast.commands._daemon import (
    add_address,
    address_of,
    ask_admin,
    fail,
    read_stats,
    whoami,
)

HELP = "end a session of your own"


def add_arguments(parser):
    parser.add_argument("session", help="its name, or its number where none has it")
    add_address(parser)
    parser.add_argument(
        "--force", action="store_true", help="also while a program uses it"
    )


def main(args):
    from holdfast.errors import HoldfastError

    address = address_of(args)
    try:
        return _end(address, args.session, args.force)
    except HoldfastError as error:
        return fail(str(error))


def _end(address, wanted, force):
    who, mine = _own_sessions(address)
    found = [s for s in mine if s["name"] == wanted]
    found = found or [s for s in mine if str(s["id"]) == wanted]
    if not found:
        return fail(f"{who} has no session {wanted!r}; holdfast status lists them")
    (session,) = found
    if session["connected"] and not force:
        return fail(
            f"a program uses session {wanted} ({session['client']}); --force ends it "
            "all the same"
        )
    ask_admin(address, "kill_session", id=session["id"], reason="")
    print(f"session {wanted} has ended")
    return 0


def _own_sessions(address):
    """(who asks, their sessions): admins see others', too."""
    name = whoami(address)["name"]
    return name, [s for s in read_stats(address)["sessions"] if s["user"] == name]
