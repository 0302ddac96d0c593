# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ends a session of your own, by its name or its number (holdfast status): its tensors
go. One that a program uses is ended with --force only; the program is told that another
took its session over. A session without a name ends with its program, or by an admin's
holdfast kill."""

from holdfast.commands._daemon import add_address, address_of, fail, read_stats, whoami

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
    import holdfast

    who, mine = _own_sessions(address)
    found = [s for s in mine if s["name"] == wanted]
    found = found or [s for s in mine if str(s["id"]) == wanted]
    if not found:
        return fail(f"{who} has no session {wanted!r}; holdfast status lists them")
    (session,) = found
    if not session["name"]:
        return fail(
            f"session {wanted} has no name: it ends with its program "
            f"({session['client']}), or an admin ends it: holdfast kill {wanted}"
        )
    if session["connected"] and not force:
        return fail(
            f"a program uses session {wanted} ({session['client']}); --force ends it "
            "all the same"
        )
    # Whoever holds a session may end it. A program that came back to it since the
    # daemon was asked keeps it, unless it is to end in any case.
    holder = holdfast.connect(
        address,
        session=session["name"],
        attach=True if force else None,
        default=False,
    )
    holder.close()
    if not holder.attached:
        return fail(f"session {wanted} has ended already")
    print(f"session {wanted} has ended")
    return 0


def _own_sessions(address):
    """(who asks, their sessions but for the one that asks): admins see others', too."""
    name = whoami(address)["name"]
    return name, [s for s in read_stats(address)["sessions"] if s["user"] == name]
