# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: each ends its own session at most, with a reason, and
never another's."""

import random
import socket
import struct
import threading
import time

import grpc
import pytest
from programs import run_client, start_client, wait_until
from wire import Local, Remote, pb

import holdfast


@pytest.fixture
def bystander(daemon, transport):
    """A client that computes all the while and must get the right answer."""
    code = """
import holdfast, sys, threading
stop = []
threading.Thread(target=lambda: (sys.stdin.read(), stop.append(1))).start()
x = holdfast.zeros(10)
n = 0
print("running", flush=True)
while not stop:
    for _ in range(100):
        x = x + 1
    n += 100
    assert x.sum().item() == 10 * n if n < 10**6 else True
print("fine")
"""
    client = start_client(code, daemon.address(transport))
    assert client.stdout.readline().strip() == "running"
    yield
    out, _ = client.communicate("", timeout=60)
    assert out.strip() == "fine" and client.returncode == 0


def op(name_id, inputs, output):
    return pb.Command(op=pb.OpCall(op=name_id, inputs=inputs, outputs=output))


def put(handle, shape=(3,), data=b"\0" * 12, **spec):
    spec = dict(dict(dtype=pb.DTYPE_FLOAT32, shape=shape), **spec)
    return pb.Command(put=pb.Put(handle=handle, spec=pb.TensorSpec(**spec), data=data))


def batch(*commands, sequence=1):
    return pb.Batch(sequence=sequence, commands=commands)


# Each ends the session; the text says why.
BREACHES = {
    "unknown op": (batch(put(1), op(60000, [1], 2)), "unknown op id 60000"),
    "stale handle": (
        batch(put(1), pb.Command(release=[1]), op(20, [1], 2)),
        "unknown handle 1",
    ),
    "foreign handle": (batch(op(20, [12345], 2)), "unknown handle 12345"),
    "handle used twice": (batch(put(1), put(1)), "must be above 1"),
    "gap in the sequence": (batch(put(1), sequence=7), "batch 7 came after"),
    "profile of a tensor": (
        batch(put(1), pb.Command(read=pb.Read(id=1, handle=1, profile=True))),
        "names no tensor. Got handle 1",
    ),
    "double release": (
        batch(put(1), pb.Command(release=[1, 1])),
        "release of unknown handle 1",
    ),
}


def session_error(events):
    for event in events:
        if event.HasField("session_error"):
            return event.session_error.message
    return None


def local_events(rings):
    """Events in the completion ring."""
    tail = struct.unpack_from("<Q", rings.completion, rings.TAIL)[0]
    at, events = 0, []
    while at < tail:
        (length,) = struct.unpack_from("<I", rings.completion, rings.DATA + at)
        start = rings.DATA + at + 4
        events.append(pb.Event.FromString(rings.completion[start : start + length]))
        at += (4 + length + 7) // 8 * 8
    return events


def replies(daemon, transport, message):
    """What a new session answers to the reads in one batch, by their ids."""
    count = sum(command.HasField("read") for command in message.commands)
    if transport == "shm":
        local = Local(daemon.socket)
        _, rings = local.open_session()
        rings.write_record(message.SerializeToString())
        wait_until(lambda: len(local_events(rings)) >= count, f"{count} replies")
        events = local_events(rings)
    else:
        remote = Remote(daemon.listen)
        token = remote.hello().session_token
        stop = threading.Event()

        def batches():
            yield message
            stop.wait(60)

        events = []
        for event in remote.stream(token, batches()):
            if event.HasField("read"):
                events.append(event)
            if len(events) == count:
                stop.set()
                break
    return {e.read.id: e.read for e in events}


@pytest.mark.parametrize("name", BREACHES)
def test_breach_ends_only_that_session(daemon, bystander, transport, name):
    message, words = BREACHES[name]
    if transport == "shm":
        local = Local(daemon.socket)
        _, rings = local.open_session()
        rings.write_record(message.SerializeToString())
        assert local.hung_up()
        error = session_error(local_events(rings))
    else:
        remote = Remote(daemon.listen)
        token = remote.hello().session_token
        try:
            error = session_error(remote.stream(token, [message]))
        except grpc.RpcError as e:
            error = e.details()
        remote.close()
    assert error is not None and words in error


@pytest.mark.parametrize(
    "command",
    [
        put(1, shape=(1 << 62, 1 << 62)),
        put(1, shape=(-5,)),
        put(1, shape=(3,), data=b"abc"),
        put(1, shape=[1] * 200),
        put(1, dtype=999),
        put(1, strides=(1 << 60,)),
        put(1, offset=-8),
        pb.Command(put=pb.Put(handle=1, block=77)),
        pb.Command(put=pb.Put(handle=1, upload=77)),
        pb.Command(op=pb.OpCall(op=1, outputs=1, attrs=[pb.Attr(slot=4000000000)])),
        pb.Command(
            op=pb.OpCall(
                op=1,
                outputs=1,
                attrs=[
                    pb.Attr(slot=0, ints=pb.IntList(values=[1 << 61, 1 << 61])),
                    pb.Attr(slot=1, s="a number?"),
                ],
            )
        ),
    ],
)
def test_wrong_values_are_one_ops_error(daemon, transport, command):
    read = pb.Command(read=pb.Read(id=5, handle=1))
    good = [put(2), pb.Command(read=pb.Read(id=6, handle=2))]
    answers = replies(daemon, transport, batch(command, read, *good))
    assert answers[5].status.code != 0 and answers[5].status.message
    assert answers[6].data == b"\0" * 12
    daemon.check_alive()


def test_review_01_in_place_op_without_target(daemon, transport):
    """An error of that op, recorded or not; the session goes on."""
    commands = [put(1)]
    for number, row in enumerate(holdfast._C.schema()):
        if not row["inplace"]:
            continue
        for inputs in ([], [0], [0, 1]):
            for record in (True, False):
                call = pb.OpCall(op=number, inputs=inputs, inplace=True, record=record)
                commands.append(pb.Command(op=call))
    commands.append(pb.Command(read=pb.Read(id=5, handle=1)))
    events = replies(daemon, transport, batch(*commands))
    assert events[5].data == b"\0" * 12
    daemon.check_alive()


def test_profile_that_nobody_reads(daemon, bystander):
    """Records beyond the bound are dropped, and all go with the session."""
    local = Local(daemon.socket)
    _, rings = local.open_session()
    on = pb.Command(profile=pb.Profile(on=True, shapes=True, max_records=2**64 - 1))
    puts = [put(i) for i in range(1, 101)]
    release = pb.Command(release=range(1, 101))
    read = pb.Command(read=pb.Read(id=5, profile=True))
    rings.write_record(batch(on, *puts, on, on, release, read).SerializeToString())
    wait_until(lambda: local_events(rings), "the reply")
    (event,) = local_events(rings)
    # Turned on anew, it forgot what came before.
    chunk = pb.ProfileChunk.FromString(event.read.data)
    assert chunk.now_ns > 0 and not chunk.records and not chunk.more
    local.socket.close()
    daemon.check_alive()


def test_random_bytes_as_batches(daemon, bystander, transport):
    rng = random.Random(5)
    valid = batch(put(1), op(20, [1], 2)).SerializeToString()
    for i in range(40):
        if i % 2:
            payload = rng.randbytes(rng.randrange(1, 300))
        else:  # almost right
            mutable = bytearray(valid)
            mutable[rng.randrange(len(valid))] ^= 1 << rng.randrange(8)
            payload = bytes(mutable[: rng.randrange(1, len(valid) + 1)])
        if transport == "shm":
            local = Local(daemon.socket)
            _, rings = local.open_session()
            rings.write_record(payload)
            time.sleep(0.005)
            local.socket.close()
        else:
            remote = Remote(daemon.listen)
            token = remote.hello().session_token
            try:
                list(remote.stream(token, [payload], stay=False))
            except grpc.RpcError as e:
                assert e.code() != grpc.StatusCode.DEADLINE_EXCEEDED
            remote.close()
    daemon.check_alive()


def test_garbage_in_the_ring(daemon, bystander):
    def overrun(rings):
        rings.publish(1 << 60)

    def huge_length(rings):
        rings.write_record(b"x" * 16, length=0x7FFFFFFF)

    def backwards(rings):
        rings.write_record(batch(put(1)).SerializeToString())
        time.sleep(0.05)
        rings.publish(0)

    def scribble(rings):
        rng = random.Random(1)
        rings.submission[:] = rng.randbytes(len(rings.submission))

    def completion(rings):
        rings.completion[:] = b"\xff" * len(rings.completion)
        for i in range(50):
            read = pb.Command(read=pb.Read(id=i + 1, handle=0))
            rings.write_record(batch(read, sequence=i + 1).SerializeToString())

    for attack in (overrun, huge_length, backwards, scribble, completion):
        local = Local(daemon.socket)
        _, rings = local.open_session()
        attack(rings)
        time.sleep(0.05)
        local.socket.close()
    daemon.check_alive()


def test_indices_that_change_under_the_kernel(daemon):
    """The client scribbles over an index tensor while gathers run."""
    code = """
import holdfast, numpy as np, threading
table = holdfast.arange(1000).float()
index = holdfast.zeros(1000, dtype=holdfast.int64)
view = index.numpy()
stop = []
def scribble():
    while not stop:
        view[:] = 1 << 40
        view[:] = 0
t = threading.Thread(target=scribble)
t.start()
for _ in range(300):
    try:
        table.gather(0, index).sum().item()
    except RuntimeError:
        pass
stop.append(1)
t.join()
"""
    run_client(code, daemon.address("shm"))
    daemon.check_alive()


def test_random_bytes_at_the_doors(daemon, bystander):
    rng = random.Random(2)
    for _ in range(30):
        s = socket.socket(socket.AF_UNIX)
        s.connect(daemon.socket)
        s.sendall(rng.randbytes(rng.randrange(1, 2000)))
        s.close()
        host, port = daemon.listen.split(":")
        s = socket.create_connection((host, int(port)))
        s.sendall(rng.randbytes(rng.randrange(1, 2000)))
        s.close()
    # A length that promises 4 GB, and a frame that never ends.
    promise = Local(daemon.socket)
    promise.socket.sendall(b"\xff\xff\xff\xff")
    assert promise.hung_up()
    half = Local(daemon.socket)
    half.socket.sendall(b"\x10\x00\x00\x00abc")
    daemon.check_alive()
    half.socket.close()


def test_version_mismatch_names_both(daemon, transport):
    if transport == "shm":
        request = pb.LocalRequest(hello=pb.HelloRequest(min_version=90, max_version=99))
        reply, _ = Local(daemon.socket).call(request)
        message = reply.status.message or reply.hello.status.message
    else:
        remote = Remote(daemon.listen)
        try:
            message = remote.hello(min_version=90, max_version=99).status.message
        except grpc.RpcError as e:
            message = e.details()
        remote.close()
    assert "90..99" in message and "server=1" in message


def test_other_op_table_gets_the_names(daemon):
    reply = Remote(daemon.listen).hello(op_fingerprint=1)
    names = {o.name: o for o in reply.ops}
    assert names["matmul"].signature.startswith("(Tensor input, Tensor other)")


def test_unknown_token_is_refused(daemon):
    remote = Remote(daemon.listen)
    with pytest.raises(grpc.RpcError) as e:
        list(remote.stream("0" * 32, [batch(put(1))]))
    assert e.value.code() != grpc.StatusCode.DEADLINE_EXCEEDED
    remote.close()


def test_client_that_never_reads(daemon, bystander, transport):
    """It asks for results for ever and takes none."""
    data = b"\0" * 200_000
    first = put(1, shape=(50_000,), data=data)
    reads = [pb.Command(read=pb.Read(id=i, handle=1)) for i in range(1, 50)]
    if transport == "shm":
        local = Local(daemon.socket)
        _, rings = local.open_session()
        rings.write_record(batch(first).SerializeToString())
        for i in range(2, 60):
            rings.write_record(batch(*reads, sequence=i).SerializeToString())
        assert local.hung_up(), "the session should have ended"
    else:
        remote = Remote(daemon.listen)
        token = remote.hello().session_token
        messages = [batch(first)]
        messages += [batch(*reads, sequence=i) for i in range(2, 60)]
        call = remote.stream(token, messages)  # and never iterate
        time.sleep(2)
        call.cancel()
        remote.close()
    daemon.check_alive()


def test_full_memory_is_one_ops_error(start_daemon, transport):
    daemon = start_daemon("--memory_limit=50000000")
    code = """
import holdfast
a = holdfast.ones(1_000_000)
b = holdfast.ones(1_000_000_00)
try:
    b.sum().item()
except holdfast.errors.OutOfMemoryError as e:
    print(e)
print(a.sum().item())
"""
    out = run_client(code, daemon.address(transport))
    assert "limit=47.7 MiB" in out and "--memory_limit" in out
    assert out.splitlines()[-1] == "1000000.0"
    daemon.stop()


def test_full_dev_shm_does_not_matter(start_daemon):
    """Arenas are memfds: a /dev/shm without a free byte is no limit."""
    full = (
        "mount -t tmpfs -o size=64k tmpfs /dev/shm && "
        "{ cat /dev/zero > /dev/shm/full 2>/dev/null; "
        'test "$(stat -f -c %a /dev/shm)" = 0 && exec "$0" "$@"; }'
    )
    daemon = start_daemon(wrapper=("unshare", "-m", "sh", "-c", full))
    out = run_client(
        "import holdfast; print(holdfast.ones(10_000_000).sum().item())",
        daemon.address("shm"),
    )
    assert float(out) == 1e7
    daemon.stop()
