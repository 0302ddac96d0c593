# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients of earlier versions, as record_client.py recorded them, get their answers.

What they sent is sent again byte for byte; only ids of ops are changed where the
table has grown, as such a client does when Hello tells it.
"""

import base64
import struct
import threading
import time
from pathlib import Path

import grpc
import pytest
from wire import Local, Rings, pb

RECORDINGS = sorted(Path(__file__).parent.glob("recorded/*.txt"))


class Recorded:
    def __init__(self, path):
        self.batches, self.answers, self.ops = [], {}, {}
        for line in path.read_text().splitlines():
            word, rest = line.split(" ", 1)
            if word == "op":
                number, name, signature = rest.split(" ", 2)
                self.ops[int(number)] = (name, signature)
                continue
            data = base64.b64decode(rest)
            if word == "hello":
                self.hello = pb.HelloRequest.FromString(data)
                assert self.hello.SerializeToString() == data
            elif word == "batch":
                self.batches.append(data)
            else:
                answer = pb.ReadResult.FromString(data)
                self.answers[answer.id] = answer

    def batches_for(self, reply):
        """The batches, with the ids that the daemon has for their ops."""
        if not reply.ops:
            assert reply.op_fingerprint == self.hello.op_fingerprint
            return self.batches
        ids = {(op.name, op.signature): op.id for op in reply.ops}
        translated = []
        for data in self.batches:
            batch = pb.Batch.FromString(data)
            for command in batch.commands:
                if command.HasField("op"):
                    command.op.op = ids[self.ops[command.op.op]]
            translated.append(batch.SerializeToString())
        return translated


def replay_grpc(daemon, recorded):
    channel = grpc.insecure_channel(daemon.listen)
    hello = channel.unary_unary("/holdfast.v1.Holdfast/Hello")
    reply = pb.HelloReply.FromString(
        hello(recorded.hello.SerializeToString(), timeout=60)
    )
    assert not reply.HasField("status"), reply.status.message
    done = threading.Event()

    def requests():
        yield from recorded.batches_for(reply)
        done.wait(60)

    events = channel.stream_stream("/holdfast.v1.Holdfast/Stream")(
        requests(), metadata=[("holdfast-session", reply.session_token)], timeout=60
    )
    answers = {}
    for data in events:
        event = pb.Event.FromString(data)
        assert not event.HasField("session_error"), event.session_error.message
        if event.HasField("read"):
            answers[event.read.id] = event.read
        if len(answers) == len(recorded.answers):
            break
    done.set()
    events.cancel()
    channel.close()
    return reply, answers


def replay_shm(daemon, recorded):
    local = Local(daemon.socket)
    message, fds = local.call(pb.LocalRequest(hello=recorded.hello))
    reply = message.hello
    assert not message.HasField("status"), message.status.message
    rings = Rings(fds)
    for batch in recorded.batches_for(reply):
        rings.write_record(batch)
    answers, at = {}, 0
    deadline = time.monotonic() + 60
    while len(answers) < len(recorded.answers) and time.monotonic() < deadline:
        (tail,) = struct.unpack_from("<Q", rings.completion, rings.TAIL)
        if at == tail:
            time.sleep(0.005)
            continue
        (size,) = struct.unpack_from("<I", rings.completion, rings.DATA + at)
        start = rings.DATA + at + 4
        event = pb.Event.FromString(rings.completion[start : start + size])
        assert not event.HasField("session_error"), event.session_error.message
        if event.HasField("read"):
            answers[event.read.id] = event.read
        at += (4 + size + 7) // 8 * 8
    local.socket.close()
    return reply, answers


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_client_gets_its_answers(daemon, path):
    recorded = Recorded(path)
    assert len(recorded.answers) >= 10
    replay = replay_grpc if path.stem.endswith("grpc") else replay_shm
    reply, answers = replay(daemon, recorded)
    assert reply.version == recorded.hello.max_version
    assert answers.keys() == recorded.answers.keys()
    for number, expected in recorded.answers.items():
        got = answers[number]
        assert got.status.code == expected.status.code, got.status.message
        assert got.data == expected.data and got.spec == expected.spec, number
    daemon.check_alive()


def test_the_highest_common_version_is_used(daemon):
    def hello(low, high):
        request = pb.HelloRequest(min_version=low, max_version=high, client="test")
        reply, _ = Local(daemon.socket).call(pb.LocalRequest(hello=request))
        return reply

    assert hello(1, 1).hello.version == 1
    newest = hello(1, 1000).hello.version
    assert newest >= 2
    assert hello(newest, newest + 1).hello.version == newest
    newer = hello(newest + 1, newest + 3).status.message
    assert f"client={newest + 1}..{newest + 3}, server=1..{newest}" in newer
    assert "The server is the older one: install a newer holdfastd" in newer
    nonsense = hello(0, 0).status.message
    assert "The client is the older one: install a newer holdfast" in nonsense
