# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Programs of several ranks start, with a world of one."""

import pytest
import torch
import torch.distributed as dist


@pytest.fixture(params=["holdfast", "cpu:gloo,holdfast:holdfast", None])
def world(request, device, tmp_path):
    """A process group of one; None: PyTorch chooses by the device."""
    store = f"file://{tmp_path}/store"
    dist.init_process_group(request.param, init_method=store, rank=0, world_size=1)
    yield device
    dist.destroy_process_group()


def test_collectives_of_one(world):
    x = torch.arange(4.0, device=world)
    dist.all_reduce(x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    dist.broadcast(x, src=0)
    parts = [torch.empty_like(x)]
    dist.all_gather(parts, x)
    assert parts[0].tolist() == x.tolist()
    whole = torch.empty(4, device=world)
    dist.all_gather_into_tensor(whole, x)
    assert whole.tolist() == x.tolist()
    part = torch.empty(4, device=world)
    dist.reduce_scatter_tensor(part, x)
    assert part.tolist() == x.tolist()
    work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
    work.wait()
    dist.barrier()
    given = [None]
    dist.all_gather_object(given, {"a": 1})
    assert given == [{"a": 1}]
    assert x.device.type == world


def losses(model, device):
    torch.manual_seed(1)
    x, y = torch.randn(16, 4).to(device), torch.randn(16, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def make_model(device):
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers).to(device)


def test_a_wrapped_model_trains_as_it_is(world):
    plain = losses(make_model(world), world)
    wrapped = torch.nn.parallel.DistributedDataParallel(make_model(world))
    assert losses(wrapped, world) == plain
    assert plain[-1] < plain[0]


RANKS = """
import sys
import torch, holdfast_torch
import torch.distributed as dist

address, store, rank = sys.argv[1:]
holdfast_torch.connect(address)
dist.init_process_group("holdfast", init_method=store, rank=int(rank), world_size=2)
torch.manual_seed(0)
model = torch.nn.Linear(3, 1).to("holdfast")
model = torch.nn.parallel.DistributedDataParallel(model)
x = torch.full((2, 3), float(int(rank) + 1), device="holdfast")
model(x).sum().backward()
print(model.module.weight.grad.tolist())
parts = [torch.empty(2, device="holdfast") for _ in range(2)]
dist.all_gather(parts, x[0, :2])
print([p.tolist() for p in parts])
dist.destroy_process_group()
"""


def test_two_ranks_by_way_of_gloo(daemon, transport, start, tmp_path):
    store = f"file://{tmp_path}/store"
    address = daemon.address(transport)
    ranks = [start(RANKS, address, store, rank) for rank in range(2)]
    expected = "[[3.0, 3.0, 3.0]]\n[[1.0, 1.0], [2.0, 2.0]]\n"
    for rank in ranks:
        status, out, err = rank.finish()
        assert status == 0, err
        assert out == expected
