# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Results of reads over gRPC are on their user's account until they are fetched."""

import wire
from programs import reserved, wait_until

import holdfast

MIB = 1 << 20
TENSOR = 15 * MIB


def upload(client, token):
    chunks = [wire.pb.UploadChunk(session_token=token, id=1, total_bytes=TENSOR)]
    chunks += [wire.pb.UploadChunk(data=bytes(MIB)) for _ in range(TENSOR // MIB)]
    call = client.channel.stream_unary(
        "/holdfast.v1.Holdfast/Upload",
        request_serializer=lambda chunk: chunk.SerializeToString(),
        response_deserializer=wire.pb.UploadReply.FromString,
    )
    call(iter(chunks), timeout=60)


def read(client, token, count):
    """The results of reading the uploaded tensor so often, none of them fetched, and
    the stream, which is open."""
    spec = wire.pb.TensorSpec(dtype=wire.pb.DTYPE_FLOAT32, shape=[TENSOR // 4])
    put = wire.pb.Put(handle=1, spec=spec, upload=1)
    commands = [wire.pb.Command(put=put)]
    commands += [
        wire.pb.Command(read=wire.pb.Read(id=i, handle=1)) for i in range(1, count + 1)
    ]
    stream = client.stream(token, [wire.pb.Batch(sequence=1, commands=commands)])
    results = []
    while len(results) < count:
        event = next(stream)
        if event.HasField("read"):
            results.append(event.read)
    return results, stream


def test_what_nobody_fetches_counts(limited):
    client = wire.Remote(limited.listen)
    token = client.hello(grace_seconds=0).session_token
    upload(client, token)
    (*fetchable, refused), stream = read(client, token, 4)  # 15 MiB five times
    assert all(result.download for result in fetchable)
    assert refused.status.code == 8  # RESOURCE_EXHAUSTED
    assert "3 results wait to be fetched" in refused.status.message
    assert "memory limit of" in refused.status.message
    assert reserved(limited) >= 60 * MIB
    stream.cancel()
    wait_until(lambda: reserved(limited) == 0, "an empty account")
    client.close()


def test_who_has_filled_their_memory_may_read_it(limited):
    with holdfast.connect(limited.listen):
        x = holdfast.ones(40 * MIB // 4)
        for _ in range(3):
            assert x.numpy().sum() == 40 * MIB // 4


def test_a_new_client_does_not_inherit_them(limited):
    client = wire.Remote(limited.listen)
    hello = client.hello(session_name="nine", grace_seconds=60)
    upload(client, hello.session_token)
    results, stream = read(client, hello.session_token, 2)
    assert all(result.download for result in results)
    assert reserved(limited) >= 45 * MIB
    with holdfast.connect(limited.listen, session="nine", attach=True):
        # Nothing was kept, either.
        assert reserved(limited) < 30 * MIB
    stream.cancel()
    client.close()
