# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finding and asking the daemon that a subcommand is about."""

import argparse
import json
import os
import sys


def add_address(parser):
    """ADDRESS, and --address for those who type that."""
    parser.add_argument(
        "address",
        nargs="?",
        help="a host's name, host:port, ssh://HOST or unix:PATH (default: "
        "HOLDFAST_ADDRESS, else `holdfast use`, else this machine's daemon)",
    )
    parser.add_argument("--address", dest="named_address", help=argparse.SUPPRESS)


def address_of(args):
    """What the daemon's requests take. SystemExit: it cannot be found out."""
    return resolved(args.address or args.named_address or "")


def resolved(address):
    """The address that a name of a host, an ssh:// or "" stands for. The host's
    credentials are this process's from now on."""
    from holdfast import _C
    from holdfast.service import hosts

    try:
        found, (token, ca, certificate, key, _) = hosts.resolve(address)
    except hosts.HostsError as error:
        raise SystemExit(fail(str(error))) from None
    shown = dict(TOKEN=token, CA=ca, CERTIFICATE=certificate, KEY=key)
    os.environ.update({f"HOLDFAST_{n}": text for n, text in shown.items() if text})
    return found or _C.default_address()


def default_address():
    """Where a daemon that nobody named would be, without starting one."""
    return resolved("")


def read_stats(address):
    """The daemon's StatsReply (_stats.py). Raises HoldfastError.

    It takes no session: there may be no room for one.
    """
    from holdfast import _C, _stats

    return _stats.parse(_C.ask_stats(address, 10.0))


# Credentials are then those of connect() in the environment.
_NOTHING = ("", "", "", "", False)


def ask_admin(address, kind, credentials=_NOTHING, **request):
    """The daemon's answer to a request of proto/admin.proto. Raises HoldfastError."""
    from holdfast import _C

    text = json.dumps({kind: request})
    return json.loads(_C.ask_admin(address, text, 10.0, credentials))


def whoami(address, credentials=_NOTHING):
    """{"name", "role"} of who asks, in the daemon's eyes. Raises HoldfastError."""
    (user,) = ask_admin(address, "whoami", credentials)["users"]
    return {"name": user["name"], "role": user["role"]}


def fail(message):
    print(f"holdfast: {message}", file=sys.stderr)
    return 1
