# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs holdfastd; arguments go to it (see holdfastd --help)."""

import argparse
import os

from holdfast.commands._daemon import fail

HELP = "run the daemon"
# The daemon's own --help and flags pass through untouched.
PASSES_ON = True


def add_arguments(parser):
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def main(args):
    from holdfast.daemon import find_daemon

    try:
        daemon = find_daemon()
    except FileNotFoundError as error:
        return fail(str(error))
    os.execv(daemon, [daemon, *args.arguments])
