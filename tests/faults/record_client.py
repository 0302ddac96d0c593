# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Records what a client says, so that later daemons can be tried with it.

    ./dev python tests/faults/record_client.py shm tests/faults/recorded/v1_shm.txt

runs PROGRAM against a daemon, through something that listens, and writes lines of
a word and base64: `hello` (the HelloRequest), `batch` (each Batch, in order) and
`answer` (each ReadResult that the daemon gave); `op ID NAME SIGNATURE` is the op
table that the client knew. Record when a protocol version is complete.
"""

import base64
import mmap
import os
import socket
import struct
import sys
import tempfile
import threading
from concurrent import futures
from pathlib import Path

import grpc
from programs import Daemon, run_client
from wire import pb

# Small integers, so that each result is exact whatever the kernels do.
PROGRAM = """
import os
import numpy as np
import holdfast as torch
from holdfast import nn
torch.connect(os.environ["HOLDFAST_ADDRESS"], session="recorded", grace=0)
torch.manual_seed(5)
x = torch.arange(12.0).reshape(3, 4)
w = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0], [1.0, 1.0]], requires_grad=True)
b = torch.zeros(2, requires_grad=True)
y = torch.relu(x @ w + b - 20)
print(y.tolist())
y.sum().backward()
print(w.grad.tolist(), b.grad.tolist())
optimizer = torch.optim.SGD([w, b], lr=0.5, momentum=0.5)
optimizer.step()
print(w.tolist(), b.tolist())
v = x[1:, ::2].clone()
v[0] = 7
v.mul_(2)
print(v.tolist(), torch.nonzero(v > 14).tolist())
print(torch.rand(1000).sum().item() > 0)
print(torch.cat([x, x], 1).sum(0).tolist(), (x > 5).sum().item())
torch.keep("weights", {"w": w, "b": b})
print(torch.from_numpy(np.arange(200)).sum().item())
torch.no_grad().__enter__()
w += 1
print(w.tolist())
torch.disconnect()
"""


class Recording:
    def __init__(self):
        self.hello = None
        self.batches = []
        self.answers = []

    def take_event(self, data):
        event = pb.Event.FromString(data)
        if event.HasField("read"):
            self.answers.append(event.read.SerializeToString())

    def save(self, path):
        def line(word, data):
            return f"{word} {base64.b64encode(data).decode()}\n"

        from holdfast import _C

        with open(path, "w") as file:
            file.write(line("hello", self.hello))
            for i, row in enumerate(_C.schema()):
                file.write(f"op {i} {row['name']} {row['signature']}\n")
            file.writelines(line("batch", batch) for batch in self.batches)
            file.writelines(line("answer", answer) for answer in self.answers)


def record_grpc(daemon, recording):
    """Runs the program through a gRPC server that hands everything on."""
    channel = grpc.insecure_channel(daemon.listen)
    service = "/holdfast.v1.Holdfast/"

    def unary(name):
        call = channel.unary_unary(service + name)

        def handle(request, context):
            if name == "Hello" and recording.hello is None:
                recording.hello = request
            return call(request, timeout=60)

        return grpc.unary_unary_rpc_method_handler(handle)

    def stream(requests, context):
        def noted():
            for request in requests:
                recording.batches.append(request)
                yield request

        token = [m for m in context.invocation_metadata() if m[0].startswith("hold")]
        for event in channel.stream_stream(service + "Stream")(noted(), metadata=token):
            recording.take_event(event)
            yield event

    methods = {name: unary(name) for name in ("Hello", "Goodbye", "Stats")}
    methods["Stream"] = grpc.stream_stream_rpc_method_handler(stream)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("holdfast.v1.Holdfast", methods)]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(run_client(PROGRAM, f"127.0.0.1:{port}"))
    server.stop(0)


def record_shm(daemon, recording, folder):
    """Runs it through a Unix socket that hands everything on, rings included."""
    path = f"{folder}/listening.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    rings = []

    def hand_on():
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(daemon.socket)

        def pump(source, sink):
            while True:
                data, fds, _, _ = socket.recv_fds(source, 1 << 20, 8)
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                if recording.hello is None:
                    (size,) = struct.unpack_from("<I", data)
                    request = pb.LocalRequest.FromString(data[4 : 4 + size])
                    recording.hello = request.hello.SerializeToString()
                elif len(fds) >= 2 and not rings:
                    rings.extend(
                        mmap.mmap(fd, os.fstat(fd).st_size, prot=mmap.PROT_READ)
                        for fd in fds[:2]
                    )
                socket.send_fds(sink, [data], fds)
                for fd in fds:
                    os.close(fd)

        threading.Thread(target=pump, args=(server, client), daemon=True).start()
        pump(client, server)

    threading.Thread(target=hand_on, daemon=True).start()
    print(run_client(PROGRAM, f"unix:{path}"))
    # Nothing was overwritten: the rings are larger than what was said.
    submission, completion = rings
    recording.batches.extend(_records(submission))
    for event in _records(completion):
        recording.take_event(event)


def _records(ring):
    """The records of a ring that has not come round; see proto/shm_ring.h."""
    (tail,) = struct.unpack_from("<Q", ring, 64)
    at, data = 0, 4096
    while at < tail:
        (size,) = struct.unpack_from("<I", ring, data + at)
        yield ring[data + at + 4 : data + at + 4 + size]
        at += (4 + size + 7) // 8 * 8


def main():
    transport, path = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="holdfast-record-") as folder:
        daemon = Daemon(Path(folder))
        recording = Recording()
        if transport == "grpc":
            record_grpc(daemon, recording)
        else:
            record_shm(daemon, recording, folder)
        daemon.stop()
    recording.save(path)
    print(f"{len(recording.batches)} batches, {len(recording.answers)} answers: {path}")


if __name__ == "__main__":
    main()
