# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Uploads over gRPC: on their user's account from the first byte to the tensor."""

import threading

import grpc
import numpy as np
import pytest
import wire
from programs import reserved, wait_until

import holdfast

MIB = 1 << 20


class Upload:
    """`sent` of `total` bytes, then nothing until finish()."""

    def __init__(self, client, token, total, sent):
        self._go_on = threading.Event()
        call = client.channel.stream_unary(
            "/holdfast.v1.Holdfast/Upload",
            request_serializer=lambda chunk: chunk.SerializeToString(),
            response_deserializer=wire.pb.UploadReply.FromString,
        )
        self.call = call.future(self._chunks(token, total, sent), timeout=60)

    def _chunks(self, token, total, sent):
        head = {"session_token": token, "id": 77, "total_bytes": total}
        for _ in range(0, sent, MIB):
            yield wire.pb.UploadChunk(data=bytes(MIB), **head)
            head = {}
        self._go_on.wait(60)

    def finish(self):
        self._go_on.set()
        return self.call.exception(timeout=60)


def test_an_upload_counts_while_it_comes_in(limited):
    client = wire.Remote(limited.listen)
    token = client.hello(grace_seconds=60).session_token
    half = Upload(client, token, 40 * MIB, 20 * MIB)
    wait_until(lambda: reserved(limited) == 20 * MIB, "20 MiB on the account")
    # Another session of the user's has what is left, and no more.
    with holdfast.connect(limited.address("shm")):
        with pytest.raises(holdfast.errors.OutOfMemoryError, match="memory limit of"):
            holdfast.ones(50 * MIB // 4).sum().item()
        assert holdfast.ones(20 * MIB // 4).sum().item() == 20 * MIB // 4
    # What can never fit is refused at its first chunk.
    whole = Upload(client, token, 65 * MIB, MIB)
    error = whole.call.exception(timeout=60)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "no room for" in error.details() and "memory limit of" in error.details()
    assert half.finish().code() == grpc.StatusCode.INVALID_ARGUMENT
    wait_until(lambda: reserved(limited) == 0, "an empty account")
    # Complete, and waiting for its Put: it still counts, until its session ends.
    assert Upload(client, token, 8 * MIB, 8 * MIB).finish() is None
    assert reserved(limited) == 8 * MIB
    client.close()


def test_an_upload_waits_for_what_is_freed_before_it(limited, transport):
    """It overtakes the stream, and with it the release that makes its room."""
    array = np.ones(10 * MIB, np.float32)
    with holdfast.connect(limited.address(transport)):
        x = holdfast.tensor(array)
        for _ in range(3):
            for _ in range(500):
                y = x[:10000].sin()
            del x
            x = holdfast.tensor(array)
            assert x[:2].sum().item() == 2
        del x, y
        with pytest.raises(holdfast.errors.OutOfMemoryError):
            holdfast.tensor(np.ones(20 * MIB, np.float32))
