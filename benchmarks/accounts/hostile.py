# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""One way to take a daemon's memory, as fast as a tenth of a processor allows, until
the process is killed: `hostile.py KIND SOCKET HOST:PORT`."""

import contextlib
import mmap
import os
import pathlib
import socket
import sys
import threading
import time

import grpc

import holdfast as torch
from holdfast.errors import HoldfastError

MIB = 1 << 20
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/faults"))


def connected(remote):
    torch.connect(remote)
    return torch.ones(4)


def handles(local, remote):
    x, kept = connected(remote), []
    while True:
        with contextlib.suppress(HoldfastError):
            kept += [x.view(-1) for _ in range(1000)]
            kept[-1].sum().item()
        yield


def graph(local, remote):
    w = connected(remote).requires_grad_()
    total = torch.zeros(())
    while True:
        with contextlib.suppress(HoldfastError):
            for _ in range(200):
                total = total + (w * w).sum()
            total.item()
        yield


def results(local, remote):
    """Asked for, and never taken."""
    import wire

    pb = wire.pb
    client = wire.Local(local)
    _, rings = client.open_session()
    spec = pb.TensorSpec(dtype=pb.DTYPE_FLOAT32, shape=[4000])
    commands = [pb.Command(put=pb.Put(handle=1, spec=spec, data=bytes(16000)))]
    sequence = 0
    while True:
        sequence += 1
        reads = [
            pb.Command(read=pb.Read(id=sequence * 100 + i, handle=1)) for i in range(20)
        ]
        batch = pb.Batch(sequence=sequence, commands=[*commands, *reads])
        if rings.tail < 3 * MIB:
            rings.write_record(batch.SerializeToString())
        commands = []
        yield


def commands(local, remote):
    """Messages that become many times as much."""
    import wire

    while True:
        client = wire.Local(local)
        _, rings = client.open_session()
        rings.write_record(b"\x08\x01" + b"\x12\x00" * 500_000)
        yield
        client.socket.close()


def strangers(local, remote):
    """Requests of many megabytes, without a token."""
    with grpc.insecure_channel(remote) as channel:
        call = channel.unary_unary("/holdfast.v1.Holdfast/Hello")
        while True:
            asked = [call.future(b"\x78\x01" * 4 * MIB, timeout=20) for _ in range(8)]
            for one in asked:
                one.exception()
            yield


def names(local, remote):
    x = connected(remote)
    number = 0
    while True:
        number += 1
        with contextlib.suppress(HoldfastError):
            torch.publish(f"{number}", {"k" * 60_000: x})
        yield


def hang_ups(local, remote):
    """Memory stays mapped, its session does not."""
    import wire

    maps = []
    while True:
        client = wire.Local(local)
        client.open_session()
        reply, _ = client.call(wire.pb.LocalRequest(allocate=32 * MIB))
        if not reply.HasField("status"):
            place = reply.block.place
            reply, fds = client.call(wire.pb.LocalRequest(map=place.segment))
            maps.append(mmap.mmap(fds[0], reply.segment.bytes))
            os.close(fds[0])
        client.socket.close()
        del maps[:-20]
        yield


def sockets(local, remote):
    """Connected, and silent."""
    kept = []
    while True:
        for _ in range(20):
            one = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                one.connect(local)
                kept.append(one)
        del kept[:-400]
        yield


def main():
    kind, local, remote = sys.argv[1:]
    role = globals()[kind.replace("-", "_")](local, remote)
    next(role)
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()
    while True:
        begin = time.monotonic()
        with contextlib.suppress(HoldfastError, OSError, EOFError, AssertionError):
            next(role)
        time.sleep(9 * (time.monotonic() - begin) + 0.001)


if __name__ == "__main__":
    main()
