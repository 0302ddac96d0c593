# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Starts a daemon of your own, which runs in the background until `holdfast stop`.

There is one for each user: `systemctl --user` runs it where there is systemd for you,
else it is a process of its own. Programs of yours on this machine find it by
themselves. Where the machine has a service for all, programs use that, and nothing is
started.

The daemon stays, with or without sessions; with --idle it ends when it has held nothing
for so long. One that connect(session=...) started ends after ten minutes of that. What
sessions with a name keep survives stop, restart and reboot.

Any other flag goes to holdfastd (holdfastd --help): holdfast start --device=cuda:all
"""

import argparse
import sys

from holdfast.commands._daemon import fail

HELP = "start your own daemon in the background"
# Flags of holdfastd's are passed on.
PASSES_ON = True


def add_arguments(parser):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--idle", type=float, metavar="SECONDS", help="end after so long without use"
    )
    parser.add_argument(
        "--detached", action="store_true", help="without systemd, also where it runs"
    )


def main(args):
    parser = argparse.ArgumentParser(prog="holdfast start", description=__doc__)
    add_arguments(parser)
    options, flags = parser.parse_known_args(args.arguments)
    if stray := [flag for flag in flags if not flag.startswith("--")]:
        parser.error(f"flags are written --name=value. Got {stray[0]!r}")
    if options.idle is not None:
        flags.append(f"--exit_when_idle={options.idle:g}")
    return run(flags, options.detached)


def run(flags, detached):
    """Starts it and tells; returns the exit status."""
    from holdfast.service import own_daemon, own_lock

    if service := own_daemon.machine_service():
        return fail(
            f"this machine's service runs at unix:{service}, and your programs use it: "
            "holdfast status"
        )
    try:
        started = own_daemon.start(flags, detached)
    except (own_daemon.OwnDaemonError, OSError) as error:
        return fail(str(error))
    owner = own_lock.owner()
    how = "runs" if started else "runs already"
    print(f"your daemon {how} (process {owner['pid']}); holdfast stop ends it")
    if not started and flags and flags != owner["flags"]:
        return fail(f"with other flags: {' '.join(owner['flags']) or 'none'}")
    if owner["unit"]:
        _say_when_it_ends()
    return 0


def _say_when_it_ends():
    from holdfast.service import user_unit

    if not user_unit.lingers():
        print(
            "holdfast: it ends when you log out, and saves what sessions keep: "
            "`loginctl enable-linger` lets it stay",
            file=sys.stderr,
        )
