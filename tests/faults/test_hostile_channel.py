# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A local client that owns what it was given: its rings, its doorbells, the memory
that it maps, its socket. Whatever it does to them is its own loss: the daemon lives,
another session goes on, and nothing of the client is left when it has gone.

HOLDFAST_FUZZ_CHANNELS sets the number of hostile clients (60 by default), and
HOLDFAST_FUZZ_SEED the first one's seed.
"""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import random
import select
import socket
import struct
import termios
import time

import pytest
from google.protobuf.message import DecodeError
from programs import wait_until
from wire import Local, pb

import holdfast

CLIENTS = int(os.environ.get("HOLDFAST_FUZZ_CHANNELS", 60))
SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", 1))

PUNCH_HOLE = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
ADD_SEALS, ALL_SEALS = 1033, 0x1F
HEADER = {"magic": 0, "capacity": 8, "tail": 64, "head": 128, "waiting": 192}
EDGES = [0, 1, 7, 8, 4096, 1 << 20, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 64) - 1]
# Ended, full, sealed, closed, answers that it did not wait for.
OWN_LOSS = (OSError, EOFError, ValueError, IndexError, struct.error, DecodeError)
libc = ctypes.CDLL(None, use_errno=True)


def put(handle, **source):
    spec = pb.TensorSpec(dtype=pb.DTYPE_FLOAT32, shape=[3])
    return pb.Command(put=pb.Put(handle=handle, spec=spec, **source))


class Hostile(Local):
    """One client and its random deeds. None of its own failures matters."""

    def __init__(self, daemon, seed):
        super().__init__(daemon.socket)
        self.random = random.Random(seed)
        reply, fds = self.call(
            pb.LocalRequest(hello=pb.HelloRequest(min_version=1, max_version=1))
        )
        assert not reply.HasField("status"), reply.status.message
        self.socket.settimeout(0.2)
        self.rings = [mmap.mmap(fd, os.fstat(fd).st_size) for fd in fds[:2]]
        self.memory, self.bells = list(fds[:2]), list(fds[2:])
        self.maps = []
        self.tail = self.sequence = self.handle = 0
        self.done = []

    def deeds(self, count):
        for _ in range(count):
            deed = self.random.choice(DEEDS)
            self.done.append(deed.__name__)
            with contextlib.suppress(*OWN_LOSS):
                deed(self)

    def close(self):
        for fd in self.memory + self.bells:
            with contextlib.suppress(OSError):
                os.close(fd)
        self.socket.close()
        for mapped in self.rings + self.maps:
            mapped.close()

    # ---- honest work, so that there is something to disturb

    def work(self):
        """A batch as it should be."""
        self.handle += 2
        first = self.handle
        add = pb.OpCall(op=self.random.randrange(60), inputs=[first], outputs=first + 1)
        commands = [
            put(first, data=bytes(12)),
            pb.Command(op=add),
            pb.Command(read=pb.Read(id=first, handle=first, place=True)),
        ]
        self.sequence += 1
        self.record(pb.Batch(sequence=self.sequence, commands=commands))

    def record(self, batch, length=None):
        payload = batch.SerializeToString()
        data = struct.pack("<I", length or len(payload)) + payload
        data += bytes(-len(data) % 8)
        at = 4096 + self.tail % (len(self.rings[0]) - 4096)
        self.rings[0][at : at + len(data)] = data
        self.tail += len(data)
        self.rings[0][64:72] = struct.pack("<Q", self.tail)
        self.ring()

    def ring(self):
        """Unless it has filled the bell, and would wait for good itself."""
        if select.select([], [self.bells[0]], [], 0)[1]:
            os.write(self.bells[0], struct.pack("<Q", 1))

    def block(self):
        """A block of memory that both map, put, and written ever after."""
        reply, _ = self.call(pb.LocalRequest(allocate=4096))
        place = reply.block.place
        _, fds = self.call(pb.LocalRequest(map=place.segment))
        self.memory += fds
        self.maps.append(mmap.mmap(fds[0], os.fstat(fds[0]).st_size))
        self.handle += 1
        self.sequence += 1
        command = put(self.handle, block=reply.block.id)
        self.record(pb.Batch(sequence=self.sequence, commands=[command]))

    # ---- its rings

    def wrong_header(self):
        ring = self.random.choice(self.rings)
        at = self.random.choice(list(HEADER.values()))
        ring[at : at + 8] = struct.pack("<Q", self.random.choice(EDGES))
        self.ring()

    def wrong_length(self):
        length = self.random.choice([1, 3, 1 << 19, 1 << 30, (1 << 32) - 2])
        self.record(pb.Batch(sequence=1), length)

    def noise_in_the_ring(self):
        ring = self.random.choice(self.rings)
        at = self.random.randrange(4096, len(ring) - 4096)
        ring[at : at + 4096] = self.random.randbytes(4096)

    # ---- its doorbells

    def blocking_bells(self):
        for bell in self.bells:
            fcntl.fcntl(bell, fcntl.F_SETFL, 0)

    def full_bell(self):
        fcntl.fcntl(self.bells[0], fcntl.F_SETFL, os.O_NONBLOCK)
        os.write(self.bells[0], struct.pack("<Q", (1 << 64) - 2))

    def stolen_rings(self):
        for bell in self.bells:
            fcntl.fcntl(bell, fcntl.F_SETFL, os.O_NONBLOCK)
            with contextlib.suppress(OSError):
                os.read(bell, 4096)

    def wanted_rings(self):
        """Asks to be rung for each thing, and never listens."""
        self.rings[1][192:196] = self.rings[0][256:260] = struct.pack("<I", 1)

    def closed_bell(self):
        """Something else is in its place, and nobody has its other end."""
        os.dup2(self.memory[0], self.random.choice(self.bells))

    # ---- its memory

    def other_size(self):
        os.ftruncate(self.random.choice(self.memory), self.random.choice([0, 1 << 30]))

    def seals(self):
        fcntl.fcntl(self.random.choice(self.memory), ADD_SEALS, ALL_SEALS)

    def hole(self):
        """Pages that are there are none any more: they read as zeros."""
        fd = self.random.choice(self.memory)
        size = ctypes.c_long(os.fstat(fd).st_size)
        libc.fallocate(fd, PUNCH_HOLE, ctypes.c_long(0), size)

    def noise_in_memory(self):
        for mapped in self.maps:
            mapped[:4096] = self.random.randbytes(4096)

    # ---- its socket

    def descriptors(self):
        """Of all kinds, the socket's own among them, which then keeps itself."""
        fds = array.array("i", [self.socket.fileno(), *self.memory] * 20)
        frame = struct.pack("<I", 2) + b"\x28\x01"
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
        self.socket.sendmsg([frame], rights)

    def half_a_frame(self):
        self.socket.send(struct.pack("<I", 1000) + b"half")

    def endless_frame(self):
        self.socket.send(struct.pack("<I", 0xFFFFFFFF))

    def noise_on_the_socket(self):
        data = self.random.randbytes(self.random.randrange(1, 200))
        self.socket.send(struct.pack("<I", len(data)) + data)

    def flood(self):
        """Asks and does not take the answers."""
        self.socket.setblocking(False)
        request = pb.LocalRequest(stats=pb.StatsRequest()).SerializeToString()
        frame = struct.pack("<I", len(request)) + request
        try:
            for _ in range(200):
                self.socket.send(frame * 50)
        finally:
            self.socket.settimeout(0.2)

    def no_more_words(self):
        self.socket.shutdown(self.random.choice([socket.SHUT_RD, socket.SHUT_WR]))

    def second_hello(self):
        request = pb.LocalRequest(hello=pb.HelloRequest(min_version=1, max_version=1))
        _, fds = self.call(request)
        self.memory += fds


DEEDS = [
    # Most often: whoever is thrown out at once does no more harm.
    *[Hostile.work] * 8,
    *[Hostile.block] * 3,
    *(Hostile.wrong_header, Hostile.wrong_length, Hostile.noise_in_the_ring),
    *(Hostile.blocking_bells, Hostile.full_bell, Hostile.stolen_rings),
    *(Hostile.wanted_rings, Hostile.closed_bell, Hostile.other_size),
    *(Hostile.seals, Hostile.hole, Hostile.noise_in_memory, Hostile.descriptors),
    *(Hostile.half_a_frame, Hostile.endless_frame, Hostile.noise_on_the_socket),
    *(Hostile.flood, Hostile.no_more_words, Hostile.second_hello),
]


def descriptors_of(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


@pytest.mark.timeout(0 if CLIENTS > 60 else 300)
def test_whatever_a_client_does_to_its_channel(daemon):
    with holdfast.connect(daemon.address("shm"), default=True):
        x = holdfast.zeros(10)
        assert (x + 1).sum().item() == 10
        before = descriptors_of(daemon)
        for seed in range(SEED, SEED + CLIENTS):
            told = f"HOLDFAST_FUZZ_SEED={seed} HOLDFAST_FUZZ_CHANNELS=1"
            client = Hostile(daemon, seed)
            client.deeds(client.random.randint(1, 25))
            # Beside it and after it.
            x = x + 1
            assert x.sum().item() == 10 * (seed - SEED + 1), (told, client.done)
            client.close()
            assert daemon.process.poll() is None, (told, client.done)
        wait_until(lambda: descriptors_of(daemon) <= before, "the descriptors back")
        wait_until(lambda: len(daemon.stats()["sessions"]) == 1, "they have gone")
        assert x.sum().item() == 10 * CLIENTS
    daemon.check_alive()


def test_each_deed_amid_work(daemon):
    """With work before and behind it."""
    with holdfast.connect(daemon.address("shm"), default=True):
        x = holdfast.ones(10)
        for deed in sorted(set(DEEDS), key=lambda deed: deed.__name__):
            client = Hostile(daemon, seed=1)
            for action in (Hostile.work, Hostile.block, deed, deed, Hostile.work):
                with contextlib.suppress(*OWN_LOSS):
                    action(client)
            assert (x + x).sum().item() == 20, deed.__name__
            client.close()
            assert (x + x).sum().item() == 20, deed.__name__
    daemon.check_alive()


def listened_to(stream):
    """Whether the daemon reads what was sent."""
    unread = array.array("i", [0])
    for _ in range(60):
        fcntl.ioctl(stream, termios.TIOCOUTQ, unread)
        if unread[0] == 0:
            return True
        time.sleep(0.005)
    return False


def test_a_client_whose_own_socket_keeps_its_stream_open(daemon):
    """It takes no answers, so the daemon listens to it no more; and its own socket
    lies in what is not read."""
    daemon.check_alive()
    before = descriptors_of(daemon)
    request = pb.LocalRequest(stats=pb.StatsRequest()).SerializeToString()
    request = struct.pack("<I", len(request)) + request
    for _ in range(8):
        client = Local(daemon.socket)
        while listened_to(client.socket):
            client.socket.sendall(request)
        own = array.array("i", [client.socket.fileno()])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, own)]
        client.socket.sendmsg([b"x"], rights)
        client.socket.close()
    wait_until(lambda: descriptors_of(daemon) <= before, "the descriptors back")
    daemon.check_alive()
