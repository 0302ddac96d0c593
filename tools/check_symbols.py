# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finds symbols that a daemon and its devices' libraries take from each other:
`check_symbols.py DAEMON LIBRARY...`.

Functions of one name in both would be made one by the dynamic linker, whichever
was meant. So a library exports its entry point alone, and imports from the daemon
nothing but Abseil, which is all that the daemon exports.
"""

import subprocess
import sys
from pathlib import Path

ENTRY = "holdfast_device_plugin"
OURS = "holdfast"
# The daemon's own table of ops: a library that has one compares ops of two tables.
TABLE = "_ZN8holdfast5GetOpENS_4OpIdE"


def is_absl(symbol):
    return ("4absl" in symbol or symbol.startswith("Absl")) and OURS not in symbol


def names(path, *flags):
    """Symbols as nm lists them; those of a version of a library have it behind @."""
    listing = subprocess.run(
        ["nm", "--format=posix", *flags, str(path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return {line.split()[0] for line in listing.splitlines()}


def exported(path):
    return {s for s in names(path, "-D", "--defined-only") if "@@" not in s}


def imported(path):
    """But for what the system's libraries have a version of."""
    return {s for s in names(path, "-D", "--undefined-only") if "@" not in s}


def faults_of_daemon(path):
    for symbol in sorted(exported(path)):
        if OURS in symbol:
            yield f"the daemon exports {symbol}"


def faults_of_library(path, daemon):
    offered, taken = exported(path), imported(path)
    if ENTRY not in offered:
        yield f"it does not export {ENTRY}"
    for symbol in sorted(offered - {ENTRY}):
        yield f"it exports {symbol}"
    for symbol in sorted(taken):
        if OURS in symbol:
            yield f"it imports {symbol}"
        elif symbol in daemon and not is_absl(symbol):
            yield f"it imports {symbol}, which the daemon exports"
    if TABLE in names(path):
        yield "it has a table of ops of its own: depend on //ops:values"


def main(paths):
    daemon, libraries = paths[0], paths[1:]
    faults = [(daemon, fault) for fault in faults_of_daemon(daemon)]
    offered = exported(daemon)
    for library in libraries:
        faults += [(library, fault) for fault in faults_of_library(library, offered)]
    for path, fault in faults:
        print(f"{Path(path).name}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
