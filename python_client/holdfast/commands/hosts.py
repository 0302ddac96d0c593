# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lists the hosts that have names (holdfast login), yours and the machine's; a star
marks the one of programs that name none."""

from holdfast.commands._daemon import fail
from holdfast.commands._text import print_table

HELP = "list the hosts that have names"


def add_arguments(parser):
    parser.add_argument("--remove", metavar="NAME", help="forget one, and its token")


def main(args):
    from holdfast.service import hosts

    try:
        return _remove(args.remove) if args.remove else _list()
    except (hosts.HostsError, OSError) as error:
        return fail(str(error))


def _remove(name):
    from holdfast.service import hosts, places

    own = hosts.read(places.config_file())
    if own["hosts"].pop(name, None) is None:
        return fail(f"{places.config_file()} has no host {name!r}")
    hosts.write(None if own["use"] == name else own["use"], own["hosts"])
    return 0


def _list():
    from holdfast.service import hosts

    chosen, _ = hosts.chosen()
    rows = [("", "NAME", "ADDRESS", "SHOWS")]
    for name, host in sorted(hosts.known().items()):
        shows = "a token" if host.token or host.token_file else ""
        shows = shows or ("a certificate" if host.certificate else "-")
        mark = "*" if chosen in (name, host.address) else ""
        rows.append((mark, name, host.address, shows))
    if len(rows) == 1:
        print("no host has a name yet: holdfast login")
    else:
        print_table(rows)
    return 0
