# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gives a daemon elsewhere a name, with the token that it asks for.

holdfast login box.example.org --ca ca.crt       # asks for the token; port 50151
holdfast login box:6000 --name lab < token.txt   # reads it
holdfast login ssh://me@box                      # needs none: ssh knows you

The daemon is asked who you are before anything is written. Then connect("box"),
`holdfast status box` and, for programs that name nothing, `holdfast use box`. The file
is ~/.config/holdfast/config.toml, readable by you alone.
"""

import argparse
import getpass
import os
import sys

from holdfast.commands._daemon import fail, whoami

HELP = "give a daemon elsewhere a name, with your token"


def add_arguments(parser):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("address", help="HOST, HOST:PORT or ssh://[USER@]HOST")
    parser.add_argument("--name", help="default: HOST as far as the first dot")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        help="others on this machine can see it in the list of processes; left out, it "
        "is asked for, or read from standard input",
    )
    parser.add_argument("--token-file", metavar="FILE", help="read it there each time")
    parser.add_argument("--ca", help="who signed the daemon's certificate, or `system`")
    parser.add_argument("--certificate", help="your own, in place of a token")
    parser.add_argument("--key", help="its private key")
    parser.add_argument(
        "--unchecked", action="store_true", help="write it without asking the daemon"
    )


def main(args):
    from holdfast.errors import HoldfastError
    from holdfast.service import hosts, places

    try:
        name, host = _host(args)
        hosts.check_name(name)
        own = hosts.read(places.config_file())
        if not args.unchecked:
            _say_who(host)
        hosts.write(own["use"], own["hosts"] | {name: host})
    except (hosts.HostsError, HoldfastError, OSError) as error:
        return fail(str(error))
    print(
        f'connect("{name}") is {host.address}; holdfast use {name} makes it the default'
    )
    return 0


def _host(args):
    from holdfast.service import hosts

    address = hosts.with_port(args.address)
    if address.startswith("unix:") or "://" in address.removeprefix("ssh://"):
        raise hosts.HostsError(
            f"a host is HOST, HOST:PORT or ssh://[USER@]HOST. Got {args.address!r}"
        )
    bare = address.removeprefix("ssh://").rpartition("@")[2].partition("/")[0]
    name = args.name or bare.partition(":")[0].partition(".")[0]
    files = (args.token_file, args.ca, args.certificate, args.key)
    token_file, ca, certificate, key = (_whole(path) for path in files)
    token = args.token or ""
    # Over ssh, with a certificate or a file nobody needs one.
    if not (token or token_file or certificate or address.startswith("ssh://")):
        token = _ask_for_token()
    return name, hosts.Host(address, token, token_file, ca, certificate, key)


def _whole(path):
    """The file is found from any folder."""
    return os.path.abspath(path) if path and path != "system" else path or ""


def _ask_for_token():
    if sys.stdin.isatty():
        return getpass.getpass("token (empty: none): ").strip()
    return sys.stdin.readline().strip()


def _say_who(host):
    """Raises HoldfastError where the daemon lets nobody in with that."""
    from holdfast.service import hosts

    you = whoami(*hosts.reach(host))
    print(f"you are {you['name']}, {you['role']}, at {host.address}")
