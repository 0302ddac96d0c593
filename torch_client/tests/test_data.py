# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Data from the host: pinned memory, workers, processes that a program starts."""

import multiprocessing
import os

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((2, 3), float(index)), index * index


def epoch(device, **options):
    """What a program sees of an epoch whose batches it moves to the device."""
    found = []
    for x, y in DataLoader(Squares(), batch_size=4, **options):
        if options.get("pin_memory"):
            assert x.is_pinned() and y.is_pinned()
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        assert x.device.type == device
        found.append(((x.sum((1, 2)) / 6) ** 2 - y).abs().sum().item())
        found.append(y.tolist())
    return found


EXPECTED = [0.0, [0, 1, 4, 9], 0.0, [16, 25, 36, 49], 0.0, [64, 81, 100, 121]]


def test_pinned_batches(device):
    assert epoch(device, pin_memory=True) == EXPECTED


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(device, start):
    options = {"num_workers": 2, "multiprocessing_context": start}
    assert epoch(device, pin_memory=True, **options) == EXPECTED
    assert torch.ones(2, device=device).sum().item() == 2


def test_pinned_memory_is_pytorchs(device):
    x = torch.arange(5.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and pinned[2:].is_pinned()
    assert pinned.device.type == "cpu" and torch.equal(pinned, x)
    pinned += 1  # the host's own memory
    moved = pinned.to(device, non_blocking=True)
    pinned.zero_()  # the copy was made already: an upload leaves nothing behind
    assert moved.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.empty(0).pin_memory().numel() == 0


def test_a_data_set_on_the_device(device):
    x, y = torch.arange(8.0, device=device), torch.arange(8, device=device)
    batches = list(DataLoader(TensorDataset(x, y), batch_size=4))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert batches[0][0].device.type == device


def in_child(function):
    """What `function` returns in a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, repr(function()).encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def test_a_forked_child_harms_nothing(device):
    x = torch.arange(4.0, device=device)
    before = x.sum().item()

    def work():
        own = torch.ones(3, device=device)
        return own.sum().item(), (own + 1).tolist()

    assert in_child(work) == repr((3.0, [2.0, 2.0, 2.0]))
    children = [in_child(lambda: os.getpid()) for _ in range(3)]
    assert len(set(children)) == 3
    x += 1
    assert x.sum().item() == before + 4


def test_a_forked_child_is_told_whose_tensors_they_are(device):
    x = torch.arange(4.0, device=device)
    said = in_child(x.tolist)
    assert said.startswith("AcceleratorError") and "forked" in said
    said = in_child(lambda: (x + 1).tolist())
    assert said.startswith("RuntimeError") and "to one session" in said
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def _spawned(queue, address):
    import holdfast_torch

    holdfast_torch.connect(address)
    queue.put(torch.ones(5, device="holdfast").sum().item())


def test_a_spawned_process_has_a_session_of_its_own(device):
    import holdfast_torch

    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    address = holdfast_torch.current_session().address
    process = context.Process(target=_spawned, args=(queue, address))
    process.start()
    assert queue.get() == 5
    process.join()
    assert process.exitcode == 0
