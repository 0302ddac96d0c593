# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What connect("ssh://box") runs on the box: finds the daemon there, starts yours where
none runs, prints where it serves gRPC and waits until its standard input ends."""

import json
import sys
import time

from holdfast.commands._daemon import fail

HELP = "the other end of ssh:// (ssh runs it)"

# A daemon that has just started opens its Unix socket first, and then the port.
_GRPC_SECONDS = 20


def add_arguments(parser):
    pass


def main(args):
    from holdfast.service import own_daemon

    try:
        answer = find()
    except (own_daemon.OwnDaemonError, OSError) as error:
        return fail(str(error))
    print(json.dumps(answer), flush=True)
    sys.stdin.buffer.read()
    return 0


def find():
    """{"listen": "host:port"} of this machine's daemon, with "token" of one's own.

    OwnDaemonError: there is no way to it.
    """
    from holdfast.service import own_daemon, own_lock, own_token, places

    path = own_daemon.machine_service()
    if path is None:
        own_daemon.start([f"--exit_when_idle={own_daemon.IDLE_SECONDS}"])
        path = places.own_socket()
    if address := _first_address(path):
        answer = {"listen": address}
        if own_lock.owner() and path == places.own_socket():
            answer["token"] = own_token.text()
        return answer
    raise own_daemon.OwnDaemonError(
        f"the daemon at unix:{path} serves no gRPC, which ssh needs: its admin adds "
        f"--listen=127.0.0.1:{places.DEFAULT_PORT} to its flags (of the service: in "
        "/etc/default/holdfastd)"
    )


def _first_address(path):
    """The first of grpc_addresses(); None: there is none, nor will be."""
    deadline = time.monotonic() + _GRPC_SECONDS
    while time.monotonic() < deadline:
        for address in grpc_addresses(path):
            return address
        time.sleep(0.05)
    return None


def grpc_addresses(path):
    """Those of the daemon's ports where a Holdfast daemon answers, if only to ask for
    credentials or TLS."""
    from holdfast import _C
    from holdfast.errors import HoldfastError
    from holdfast.service import grpc_port

    for address in grpc_port.candidates(path):
        try:
            _C.ask_stats(address, 5.0)
        except HoldfastError as error:
            if not _asks_for_more(str(error)):
                continue
        except ConnectionError:
            continue
        yield address


def _asks_for_more(message):
    return "token" in message or "speaks TLS" in message or "certificate" in message
