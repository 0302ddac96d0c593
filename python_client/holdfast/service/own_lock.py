# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The lock of the user's own daemon, which the daemon itself holds.

It is a record lock: taken before the process becomes the daemon, kept by the system
until that process ends, however it ends. The system tells who has it, so that no
process number from a file is believed.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct

from holdfast.service import places

# struct flock of 64-bit Linux: type, whence, start, length, process.
_FLOCK = struct.Struct("hhqqi4x")


def _open(name):
    folder = places.private_folder(places.state_folder())
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def take(more, unit):
    """Takes the lock for this process and what it becomes; False: another has it.

    more, unit: what restart has to know (see owner()).
    """
    lock = _open("lock")
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    note = {"host": socket.gethostname(), "socket": places.own_socket()}
    note |= {"unit": unit, "flags": list(more)}
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(note).encode(), 0)
    os.set_inheritable(lock, True)  # to close it would be to let go of the lock
    return True


def owner():
    """The daemon that runs: a dict of pid, host, socket, unit (whether systemd started
    it) and flags (beside the usual ones). None: none runs."""
    try:
        lock = os.open(places.state_folder() + "/lock", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(lock, fcntl.F_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return None
        try:
            note = json.loads(os.pread(lock, 1 << 20, 0))
        except ValueError:  # it has just taken the lock
            note = {"host": socket.gethostname(), "socket": places.own_socket()}
            note |= {"unit": False, "flags": []}
        return note | {"pid": pid}
    finally:
        os.close(lock)


@contextlib.contextmanager
def one_starter():
    """Programs that start the daemon at once take turns."""
    turn = _open("starting")
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
    finally:
        os.close(turn)
