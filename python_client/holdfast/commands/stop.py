# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ends the daemon that `holdfast start` or connect(session=...) started.

What a session with a name keeps (holdfast.keep) is saved, as are durable names
(holdfast.publish with durable=True): connect(session=...) finds them when the daemon is
back. All else goes. While programs use the daemon, --force is needed: they are told,
and lose what they do not keep.
"""

from holdfast.commands._daemon import fail, read_stats

HELP = "end your own daemon"


def add_arguments(parser):
    parser.add_argument(
        "--force", action="store_true", help="also while programs use it"
    )


def main(args):
    from holdfast.service import own_daemon

    try:
        if not args.force and (users := in_use()):
            return fail(f"{users}; --force ends it all the same")
        ended = own_daemon.stop()
    except (own_daemon.OwnDaemonError, OSError) as error:
        return fail(str(error))
    print("your daemon has ended" if ended else "no daemon of yours runs")
    return 0


def in_use():
    """Which programs use the daemon, in words; "" if none does."""
    from holdfast.errors import HoldfastError
    from holdfast.service import own_lock

    owner = own_lock.owner()
    if owner is None:
        return ""
    try:
        sessions = read_stats(f"unix:{owner['socket']}")["sessions"]
    except HoldfastError:
        return ""  # it does not answer: nobody is served
    busy = [s for s in sessions if s["connected"]]
    names = ", ".join(repr(s["name"]) if s["name"] else f"{s['id']}" for s in busy)
    plural = "s use" if len(busy) > 1 else " uses"
    return f"{len(busy)} program{plural} it (session {names})" if busy else ""
