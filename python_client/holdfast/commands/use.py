# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Chooses the host of programs that name none (see holdfast login); `holdfast use
--none` goes back to this machine's daemon. HOLDFAST_ADDRESS comes before it."""

from holdfast.commands._daemon import fail

HELP = "choose the host of programs that name none"


def add_arguments(parser):
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("name", nargs="?", help="as `holdfast hosts` lists it")
    group.add_argument("--none", action="store_true", help="this machine's daemon")


def main(args):
    from holdfast.service import hosts, places

    try:
        own = hosts.read(places.config_file())
        known = hosts.known()
        if args.name and args.name not in known:
            names = ", ".join(sorted(known)) or "none yet: holdfast login"
            return fail(f"there is no host {args.name!r}. There are: {names}")
        hosts.write(args.name, own["hosts"])
        chosen, source = hosts.chosen()
    except (hosts.HostsError, OSError) as error:
        return fail(str(error))
    where = known[args.name].address if args.name else "this machine's daemon"
    print(f"programs that name no host use {where}")
    if chosen != (args.name or ""):
        print(f"but here and now {source} says {chosen}")
    return 0
