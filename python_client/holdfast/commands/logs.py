# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shows the log of your own daemon. The service's is the journal's: journalctl -u
holdfastd."""

import os
import sys
import time

from holdfast.commands._daemon import fail

HELP = "show your own daemon's log"


def add_arguments(parser):
    parser.add_argument("-n", "--lines", type=int, default=50, help="default: 50")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on until Ctrl-C"
    )


def main(args):
    from holdfast.service import own_daemon

    path = own_daemon.log_file()
    if not path.exists():
        return fail(f"there is no {path}: no daemon of yours has run (holdfast start)")
    print(own_daemon.log_tail(args.lines), flush=True)
    if args.follow:
        try:
            _follow(path)
        except KeyboardInterrupt:
            print()
    return 0


def _follow(path):
    """What is appended from now on, also after the file was moved aside."""
    file = open(path, encoding="utf-8", errors="replace")
    file.seek(0, os.SEEK_END)
    while True:
        if text := file.read():
            sys.stdout.write(text)
            sys.stdout.flush()
            continue
        time.sleep(0.2)
        if path.exists() and not os.path.samestat(
            os.stat(path), os.fstat(file.fileno())
        ):
            file.close()
            file = open(path, encoding="utf-8", errors="replace")
