# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ends your own daemon and starts it again with the same flags, as after an upgrade.

What it does to sessions: see `holdfast stop --help`.
"""

from holdfast.commands import start, stop

HELP = "end your own daemon and start it again"


def add_arguments(parser):
    stop.add_arguments(parser)


def main(args):
    from holdfast.service import own_lock

    owner = own_lock.owner()
    status = stop.main(args)
    if status:
        return status
    flags = owner["flags"] if owner else []
    return start.run(flags, detached=owner is not None and not owner["unit"])
