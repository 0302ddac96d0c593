# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensor.view(dtype) and Tensor.data_ptr."""

import ctypes

import numpy as np
import pytest

import holdfast
from torch_peer import torch as peer

pytestmark = pytest.mark.usefixtures("torch")
TYPES = "bool uint8 int16 int64 bfloat16 float32 complex64".split()
BYTES = np.random.default_rng(3).integers(0, 2, (3, 2, 32)).astype(np.uint8)


def both(name):
    """The same memory as a tensor of that type: ours and PyTorch's."""
    return (
        holdfast.tensor(BYTES).view(getattr(holdfast, name)),
        peer.tensor(BYTES).view(getattr(peer, name)),
    )


def assert_same_bytes(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    a, b = ours.contiguous().view(holdfast.uint8), theirs.contiguous().view(peer.uint8)
    np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("own", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_view_as_another_type(own, other):
    ours, theirs = both(own)
    assert_same_bytes(
        ours.view(getattr(holdfast, other)), theirs.view(getattr(peer, other))
    )


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: x[1:],
        lambda x: x[:, 1],
        lambda x: x[..., 8:24],
        lambda x: x[..., 3:],
        lambda x: x[..., ::2],
        lambda x: x.transpose(0, 1),
        lambda x: x.transpose(1, 2),
        lambda x: x[0, 0, 0],
        lambda x: x[..., :0],
        lambda x: x.as_strided((2, 4), (9, 1)),
    ],
)
@pytest.mark.parametrize("pair", [("uint8", "int16"), ("float32", "uint8")])
def test_views_of_views(cut, pair):
    ours, theirs = (cut(x) for x in both(pair[0]))
    try:
        expected = theirs.view(getattr(peer, pair[1]))
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as caught:
            ours.view(getattr(holdfast, pair[1]))
        start = str(error).split(" must")[0].split(" cannot")[0]
        assert str(caught.value).startswith(start)
        return
    result = ours.view(getattr(holdfast, pair[1]))
    assert tuple(result.stride()) == expected.stride()
    if expected.numel():
        assert result.storage_offset() == expected.storage_offset()
    assert_same_bytes(result, expected)


def test_writes_are_seen_on_both_sides():
    x = holdfast.tensor([1.0, -2.0])
    bits = x.view(holdfast.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000]
    bits &= 0x7FFFFFFF
    assert x.tolist() == [1.0, 2.0]
    x.neg_()
    assert bits.view(holdfast.float32).tolist() == [-1.0, -2.0]
    del x
    assert bits.view(holdfast.float32).tolist() == [-1.0, -2.0]
    w = holdfast.ones(2, requires_grad=True)
    assert not (w * 2).view(holdfast.int32).requires_grad


def test_data_ptr(transport):
    x = holdfast.zeros(4, 6)
    assert holdfast.zeros(0).data_ptr() == 0
    if transport == "grpc":
        assert x.data_ptr() == 0
        return
    assert x.data_ptr() == x.view(-1).data_ptr() == x.detach().data_ptr()
    assert x.data_ptr() == x.t().data_ptr() == x.data.data_ptr()
    assert x[1].data_ptr() - x.data_ptr() == 24
    assert x[1].data_ptr() == x[1:].data_ptr() != x[2].data_ptr()
    assert x.data_ptr() != x.clone().data_ptr()
    memory = (ctypes.c_float * 24).from_address(x.data_ptr())
    x[1, 0] = 5
    assert memory[6] == 5
    memory[7] = 6
    assert x[1].tolist()[:2] == [5, 6]
    y = x[1:]
    del x
    y.mul_(2)
    assert memory[6:8] == [10, 12]
    tied = holdfast.nn.Linear(3, 3)
    other = holdfast.nn.Linear(3, 3)
    other.weight = tied.weight
    pointers = {p.data_ptr() for m in (tied, other) for p in m.parameters()}
    assert len(pointers) == 3
