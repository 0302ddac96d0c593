# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The protocol without a client: raw messages over both transports.

A client of ours would never send what these tests send.
"""

import importlib
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _generate():
    folder = tempfile.mkdtemp()
    subprocess.run(
        [
            *("protoc", f"-I{ROOT}", f"--python_out={folder}"),
            *("proto/holdfast.proto", "proto/admin.proto", "proto/stats.proto"),
        ],
        cwd=ROOT,
        check=True,
    )
    sys.path.insert(0, folder)
    return importlib.import_module("proto.holdfast_pb2")


pb = _generate()


def hello(**fields):
    fields = dict(dict(min_version=1, max_version=1, client="test"), **fields)
    return pb.HelloRequest(**fields)


class Local:
    """A raw client of the Unix socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)

    def send(self, request):
        data = request.SerializeToString()
        self.socket.sendall(struct.pack("<I", len(data)) + data)

    def receive(self):
        """(reply, descriptors)."""
        data, fds = b"", []
        while len(data) < 4 or len(data) < 4 + struct.unpack_from("<I", data)[0]:
            more, new, _, _ = socket.recv_fds(self.socket, 65536, 8)
            if not more:
                raise EOFError("the daemon hung up")
            data += more
            fds += new
        return pb.LocalReply.FromString(data[4:]), fds

    def call(self, request):
        self.send(request)
        return self.receive()

    def open_session(self, **fields):
        reply, fds = self.call(pb.LocalRequest(hello=hello(**fields)))
        assert not reply.HasField("status"), reply.status.message
        return reply.hello, Rings(fds)

    def hung_up(self):
        """True once the daemon has closed the socket (waits for it)."""
        try:
            while True:
                if not self.socket.recv(65536):
                    return True
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


class Rings:
    """The shared memory of a session, raw. See proto/shm_ring.h."""

    DATA = 4096
    TAIL, HEAD, PRODUCER_WAITING = 64, 128, 256
    SKIP = 0xFFFFFFFF

    def __init__(self, fds):
        self.submission = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
        self.completion = mmap.mmap(fds[1], os.fstat(fds[1]).st_size)
        self.bell = fds[2]
        self.tail = 0
        self.head = 0

    def write_record(self, payload, length=None):
        """One record; `length` may lie."""
        record = struct.pack("<I", len(payload) if length is None else length)
        record += payload
        record += b"\0" * (-len(record) % 8)
        start = self.DATA + self.tail
        self.submission[start : start + len(record)] = record
        self.tail += len(record)
        self.publish(self.tail)

    def publish(self, tail):
        self.submission[self.TAIL : self.TAIL + 8] = struct.pack("<Q", tail)
        self.ring()

    def ring(self):
        os.write(self.bell, struct.pack("<Q", 1))

    def taken(self):
        """Whether the daemon has read all that was written."""
        return struct.unpack_from("<Q", self.submission, self.HEAD)[0] == self.tail

    def ended(self):
        """Why the daemon ended the session; None while it goes on."""
        self.seen = [*getattr(self, "seen", ()), *self.events()]
        for event in self.seen:
            if event.HasField("session_error"):
                return event.session_error
        return None

    def events(self):
        """Those that have come, in order."""
        ring, capacity = self.completion, len(self.completion) - self.DATA
        (tail,) = struct.unpack_from("<Q", ring, self.TAIL)
        found = []
        while self.head < tail:
            start = self.DATA + self.head % capacity
            (length,) = struct.unpack_from("<I", ring, start)
            if length == self.SKIP:
                self.head += capacity - self.head % capacity
                continue
            found.append(pb.Event.FromString(ring[start + 4 : start + 4 + length]))
            self.head += -(-(length + 4) // 8) * 8
        ring[self.HEAD : self.HEAD + 8] = struct.pack("<Q", self.head)
        if struct.unpack_from("<I", ring, self.PRODUCER_WAITING)[0]:
            ring[self.PRODUCER_WAITING : self.PRODUCER_WAITING + 4] = bytes(4)
            self.ring()
        return found


class Remote:
    """A raw gRPC client."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.closed = threading.Event()
        self._call = self.channel.unary_unary(
            "/holdfast.v1.Holdfast/Hello",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=pb.HelloReply.FromString,
        )

    def hello(self, **fields):
        return self._call(hello(**fields), timeout=60)

    def stream(self, token, batches, stay=True):
        """Sends raw bytes or Batch messages; iterates over the events.

        With `stay` it stays open for sending: a client that closes its side
        has gone, and need not be told of errors.
        """

        def keep_open():
            yield from batches
            if stay:
                self.closed.wait(60)

        call = self.channel.stream_stream(
            "/holdfast.v1.Holdfast/Stream",
            request_serializer=lambda m: (
                m if isinstance(m, bytes) else m.SerializeToString()
            ),
            response_deserializer=pb.Event.FromString,
        )
        return call(keep_open(), metadata=[("holdfast-session", token)], timeout=60)

    def close(self):
        self.closed.set()
        self.channel.close()
