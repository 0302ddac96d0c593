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
        help="host:port or unix:PATH (default: HOLDFAST_ADDRESS, else this machine's "
        "daemon)",
    )
    parser.add_argument("--address", dest="named_address", help=argparse.SUPPRESS)


def address_of(args):
    return args.address or args.named_address or default_address()


def default_address():
    """Where a daemon that nobody named would be, without starting one."""
    if os.environ.get("HOLDFAST_ADDRESS"):
        return os.environ["HOLDFAST_ADDRESS"]
    from holdfast import _C

    return _C.default_address()


def read_stats(address):
    """The daemon's StatsReply (_stats.py). Raises HoldfastError.

    It takes no session: there may be no room for one.
    """
    from holdfast import _C, _stats

    return _stats.parse(_C.ask_stats(address, 10.0))


def ask_admin(address, kind, **request):
    """The daemon's answer to a request of proto/admin.proto. Raises HoldfastError.

    Credentials are those of connect() in the environment.
    """
    from holdfast import _C

    text = json.dumps({kind: request})
    nothing = ("", "", "", "", False)
    return json.loads(_C.ask_admin(address, text, 10.0, nothing))


def whoami(address):
    """{"name", "role"} of who asks, in the daemon's eyes. Raises HoldfastError."""
    (user,) = ask_admin(address, "whoami")["users"]
    return {"name": user["name"], "role": user["role"]}


def fail(message):
    print(f"holdfast: {message}", file=sys.stderr)
    return 1
