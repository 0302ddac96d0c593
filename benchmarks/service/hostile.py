# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, or are merely stuck, beside one that works.

Run as `hostile.py SOCKET HOST:PORT` it is the crowd of them, until its input ends.
What is measured is what the daemon does because of them, not how they use up the
machine: they are slow, and also measured while they turn to another daemon.
"""

import contextlib
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

ROUNDS = 3  # with and without, in turns


def trickle(local, remote):
    """A byte a second, of a message that never ends."""
    with socket.socket(socket.AF_UNIX) as one, socket.socket() as other:
        one.connect(local)
        other.connect(remote)
        while True:
            one.send(b"\x01")
            other.send(b"P")
            yield 1


def garbage(local, remote):
    """Random bytes instead of messages."""
    while True:
        for family, address in ((socket.AF_UNIX, local), (socket.AF_INET, remote)):
            with socket.socket(family) as s, contextlib.suppress(OSError):
                s.connect(address)
                s.sendall(random.randbytes(10_000))
        yield 0.2


def endless(local, remote):
    """A message of a gigabyte is announced."""
    while True:
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(local)
            s.sendall(struct.pack("<I", 1 << 30) + bytes(1000))
        yield 0.2


def broken_ring(local, remote):
    """A session whose records claim to be longer than they are."""
    while True:
        client = wire().Local(local)
        _, rings = client.open_session()
        rings.write_record(b"nothing", length=1 << 30)
        yield 0.2
        client.socket.close()


def deaf(local, remote):
    """Asks and never listens, until its rings are full."""
    pb = wire().pb
    client = wire().Local(local)
    _, rings = client.open_session()
    spec = pb.TensorSpec(dtype=pb.DTYPE_FLOAT32, shape=[1000])
    put = pb.Command(put=pb.Put(handle=1, spec=spec, data=bytes(4000)))
    commands, sequence = [put], 0
    while True:
        if sequence < 2000:
            sequence += 1
            read = pb.Command(read=pb.Read(id=sequence, handle=1))
            batch = pb.Batch(sequence=sequence, commands=[*commands, read])
            rings.write_record(batch.SerializeToString())
            commands = []
        yield 0.01


def guess(local, remote):
    """Tokens of sessions, by chance."""
    client = wire().Local(local)
    request = wire().pb.LocalRequest
    while True:
        token = random.randbytes(16).hex()
        client.call(request(hello=wire().hello(session_token=token)))
        yield 0.05


def scan(local, remote):
    """Handles that are not its own."""
    pb = wire().pb
    while True:
        client = wire().Local(local)
        _, rings = client.open_session()
        reads = [
            pb.Command(read=pb.Read(id=i, handle=random.getrandbits(40)))
            for i in range(1, 100)
        ]
        rings.write_record(pb.Batch(sequence=1, commands=reads).SerializeToString())
        yield 0.2
        client.socket.close()


def wire():
    """The raw client of the fault suite."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/faults"
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    import wire

    return wire


def keep_at_it(role, local, remote):
    while True:
        # A role that the daemon cut off begins anew.
        with contextlib.suppress(OSError, EOFError, AssertionError):
            for pause in role(local, remote):
                time.sleep(pause)
        time.sleep(0.2)


@contextlib.contextmanager
def crowd(daemon):
    process = subprocess.Popen(
        [sys.executable, __file__, daemon["socket"], daemon["listen"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the hostile clients did not start; see above")
        yield
    finally:
        process.kill()
        process.wait()


def latency_beside_them(r, daemon, seconds):
    """p50 and p99 of an op and a read beside the crowd, against no crowd and against
    a crowd at another daemon: that one takes as much of the machine, and nothing of
    this daemon."""
    import daemon as daemons
    import fairness

    address = "unix:" + daemon["socket"]
    here, elsewhere, alone = [], [], []
    with daemons.running() as other:
        for _ in range(ROUNDS):
            alone.append(fairness.latencies(address, 0, seconds))
            for target, side in ((daemon, here), (other, elsewhere)):
                with crowd(target):
                    side.append(fairness.latencies(address, 0, seconds))
    for against, others, ratio in (
        ("the same at another daemon", elsewhere, 1.1),
        ("none", alone, None),
    ):
        for q in (50, 99):
            mine, theirs = (
                statistics.median(fairness.quantile(one, q / 100) for one in side) * 1e3
                for side in (here, others)
            )
            r.add(
                f"op and read beside hostile clients, against {against}: p{q}",
                mine,
                "ms",
                theirs,
                target_ratio=ratio,
            )


def main():
    local, listen = sys.argv[1:]
    host, port = listen.rsplit(":", 1)
    wire()
    for role in (trickle, garbage, endless, broken_ring, deaf, guess, scan):
        threading.Thread(
            target=keep_at_it, args=(role, local, (host, int(port))), daemon=True
        ).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
