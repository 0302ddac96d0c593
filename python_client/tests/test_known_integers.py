# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Integers read one by one: the client keeps some (client/known_integer.h), and must
never give an old one."""

import numpy as np
import pytest

import holdfast
from holdfast.profiler import profile


def elements(vector):
    return [int(e) for e in vector]


def reads(f):
    """f's result, and how many reads it sent."""
    with profile() as profiled:
        result = f()
    return result, sum(event.name == "read" for event in profiled.events())


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_elements(torch, dtype):
    vector = torch.arange(5).to(getattr(torch, dtype))
    assert elements(vector) == [0, 1, 2, 3, 4] == elements(vector)
    assert [vector[i].item() for i in (-1, -5)] == [4, 0]
    mask = vector > 2
    assert [e.item() for e in mask] == [False, False, False, True, True]
    assert all(type(e.item()) is bool for e in mask)


WRITES = {
    "the vector": lambda v, e, torch: v.add_(1),
    "a slice": lambda v, e, torch: v[:2].add_(1),
    "the element": lambda v, e, torch: e.add_(1),
    "an index": lambda v, e, torch: v.__setitem__(0, 11),
    "a mask": lambda v, e, torch: v.__setitem__(v > 9, 11),
    "a detached alias": lambda v, e, torch: v.detach().add_(1),
    "data": lambda v, e, torch: v.data.add_(1),
    "a reshaped view": lambda v, e, torch: v.view(2, 2).add_(1),
    "copy_": lambda v, e, torch: v.copy_(torch.tensor([11, 0, 0, 0])),
    "out": lambda v, e, torch: torch.add(v, 1, out=v),
}


@pytest.mark.parametrize("by", WRITES)
def test_a_write_is_seen(torch, by):
    vector = torch.tensor([10, 20, 30, 40])
    before = vector[0]
    assert int(before) == 10 and int(before + 5) == 15
    WRITES[by](vector, before, torch)
    assert int(before) == 11 and int(vector[0]) == 11
    assert int(before + 5) == 16 and int(5 - before) == -6
    WRITES[by](vector, before, torch)
    assert int(before) == vector.tolist()[0]


def test_numpys_writes_are_seen(torch, transport):
    if transport != "shm":
        pytest.skip("arrays are copies")
    vector = torch.tensor([10, 20])
    element = vector[0]
    assert int(element) == 10
    array = vector.numpy()
    array[0] = 7
    assert int(element) == 7 and int(element + 1) == 8
    array[0] = 8
    del array
    assert int(element) == 8 and int(element * 2) == 16


def test_small_arrays_that_tensors_were_made_of(torch):
    array = np.array([1, 2])
    vector = torch.from_numpy(array)
    element = vector[0]
    assert int(element) == 1
    array[0] = 5
    assert int(element) == 5


def test_another_process_may_write(torch):
    vector = torch.tensor([1, 2]).share_memory_()
    element = vector[1]
    assert int(element) == 2
    other = holdfast.multiprocessing.get_context("spawn").Process(
        target=_write, args=(vector,)
    )
    other.start()
    other.join()
    assert other.exitcode == 0 and int(element) == 9


def _write(vector):
    vector.fill_(9)
    vector.tolist()


def test_arithmetic_is_the_daemons(torch):
    i = torch.tensor([7, -(2**63)])
    seven, least = i
    assert (int(seven), int(least)) == (7, -(2**63))
    assert int(seven + 8) == 15 and int(8 - seven) == 1 and int(3 * seven) == 21
    assert int(least - 1) == 2**63 - 1 and int(least * 2) == 0
    assert int((seven + 1) * (seven - 1)) == 48
    assert (seven + 0.5).item() == 7.5 and (seven + True).item() == 8
    assert (torch.tensor([1], dtype=torch.int8)[0] + 127).item() == -128


@pytest.mark.parametrize("target", ["vector", "element"])
def test_an_error_is_told_at_the_read(torch, target):
    vector = torch.tensor([1, 2])
    element = vector[0]
    assert int(element) == 1
    written = vector if target == "vector" else element
    written.index_fill_(0, torch.tensor([5]), 9)
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        int(vector[0] if target == "vector" else element)
    assert int(element) == 1 and vector.tolist() == [1, 2]


def test_a_vector_is_read_once(torch):
    data, starts = torch.arange(100), torch.randint(90, (32,))

    def rows():
        return torch.stack([data[i : i + 8] for i in starts])

    made, count = reads(rows)
    assert count <= 4
    assert made.tolist() == [list(range(i, i + 8)) for i in starts.tolist()]
