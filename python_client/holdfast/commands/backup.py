# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Copies a daemon's state, also while the daemon runs: what FROM (--state_dir) holds at
one moment, whole, into the new folder TO.

holdfast backup /var/lib/holdfast /backup/holdfast-monday

Durable names are in it. Sessions are as the last end of the daemon saved them, since
that is when they are written. To go back, end the daemon and start it with
--state_dir=TO.
"""

import argparse
import os
import re
import shutil

from holdfast.commands._daemon import fail
from holdfast.commands._text import size

HELP = "copy a daemon's state, also while it runs"

# server/state/state_folder.h: files are written aside, renamed, and never changed.
_FILE = re.compile(r"\d+\.tensors")
_PASSES = 100


class BackupError(Exception):
    """There is no copy; the message says why."""


def add_arguments(parser):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="FROM", help="the daemon's --state_dir")
    parser.add_argument("target", metavar="TO", help="a folder that is not there yet")


def main(args):
    try:
        count, total = copy(args.source, args.target)
    except (BackupError, OSError) as error:
        return fail(str(error))
    print(f"{args.target}: {count} files, {size(total)}")
    return 0


def copy(source, target):
    """Makes the folder `target`; returns (files, bytes). BackupError, OSError: it is
    not there then."""
    if os.path.exists(target):
        raise BackupError(f"{target} is there already; name a folder that is not")
    if not os.path.exists(os.path.join(source, "lock")):
        raise BackupError(f"{source} is no daemon's --state_dir: it has no lock file")
    aside = f"{os.path.abspath(target)}.unfinished"
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside, mode=0o700)
    try:
        names = _copy_all(source, aside)
        total = sum(os.path.getsize(os.path.join(aside, name)) for name in names)
        _sync(aside)
        os.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    _sync(os.path.dirname(os.path.abspath(target)))
    return len(names), total


def _copy_all(source, aside):
    """Copies until it has every file of one moment; returns their names."""
    copied = set()
    for _ in range(_PASSES):
        names = _list(source)
        for name in sorted(names - copied):
            try:
                _copy_file(os.path.join(source, name), os.path.join(aside, name))
            except FileNotFoundError:
                break  # a newer version has taken its place: there is a new moment
            copied.add(name)
        else:
            for name in copied - names:
                os.unlink(os.path.join(aside, name))
            return names
    raise BackupError(
        f"{source} changes faster than it can be copied, in {_PASSES} attempts: try "
        "when fewer programs publish"
    )


def _list(source):
    """The files of one moment: a listing alone may miss a file and what replaces it,
    but not twice in the same way, since numbers only grow."""
    former = None
    while True:
        names = {name for name in os.listdir(source) if _FILE.fullmatch(name)}
        if names == former:
            return names
        former = names


def _copy_file(source, target):
    with open(source, "rb") as readable, open(target, "wb") as writable:
        os.fchmod(writable.fileno(), 0o600)
        shutil.copyfileobj(readable, writable, 1 << 20)
        writable.flush()
        os.fsync(writable.fileno())


def _sync(folder):
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
