# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where the daemon behind a Unix socket listens for gRPC, as the system knows it.

The kernel says whose socket it is; a port counts only if it is the same process's, or,
where that process is another user's, that user's: nobody else's port is taken for it.
"""

import contextlib
import ipaddress
import os
import re
import socket
import struct
from pathlib import Path

_LISTENING = "0A"
_PEER = struct.Struct("iII")  # process, user, group


def owner_of(path):
    """(process, user) of who listens at the Unix socket. OSError: nobody does."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(path)
        peer = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid, user, _ = _PEER.unpack(peer)
    return pid, user


def candidates(path):
    """["host:port"] on which the daemon at `path` may serve gRPC, and other things."""
    pid, user = owner_of(path)
    sockets = _sockets_of(pid)
    found = []
    for name in ("tcp", "tcp6"):
        for line in _lines(f"/proc/net/{name}"):
            fields = line.split()
            if fields[3] != _LISTENING or int(fields[7]) != user:
                continue
            if sockets is None or fields[9] in sockets:
                found.append(_address(fields[1]))
    return found


def _lines(path):
    with contextlib.suppress(OSError):
        return Path(path).read_text().splitlines()[1:]
    return []


def _sockets_of(pid):
    """Inodes of a process's sockets; None where the system does not tell."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry.path)):
                    found.add(match[1])
    except OSError:
        return None
    return found


def _address(field):
    """ "0100007F:C3F7" as "127.0.0.1:50167"; what means all addresses is loopback's."""
    host, _, port = field.partition(":")
    words = [int(host[i : i + 8], 16) for i in range(0, len(host), 8)]
    address = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1")
    text = f"[{address}]" if address.version == 6 else str(address)
    return f"{text}:{int(port, 16)}"
