# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed and data parallelism with one process and one device."""

import pytest

import holdfast
from holdfast import distributed as dist
from holdfast import errors, nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


@pytest.fixture
def group():
    dist.init_process_group("gloo", init_method="env://", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_group_of_one(group):
    assert dist.is_available() and dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert dist.get_backend() == "gloo"
    x = holdfast.tensor([1.0, 2.0])
    assert dist.all_reduce(x, op=dist.ReduceOp.SUM) is None
    assert dist.all_reduce(x, async_op=True).wait() is True
    dist.broadcast(x, src=0)
    dist.barrier()
    assert x.tolist() == [1.0, 2.0]
    parts = [holdfast.zeros(2)]
    dist.all_gather(parts, x)
    assert parts[0].tolist() == [1.0, 2.0]
    y = holdfast.zeros(2)
    dist.reduce_scatter(y, [x])
    assert y.tolist() == [1.0, 2.0]
    found = [None]
    dist.all_gather_object(found, {"a": 1})
    assert found == [{"a": 1}]
    assert dist.get_world_size(dist.new_group([0])) == 1
    assert dist.get_rank(dist.new_group([])) == -1


def test_what_needs_others_says_so(group, monkeypatch):
    with pytest.raises(errors.UnsupportedError, match="nobody to exchange"):
        dist.send(holdfast.zeros(1), dst=1)
    with pytest.raises(RuntimeError, match="rank 0 only. Got 3"):
        dist.broadcast(holdfast.zeros(1), src=3)
    with pytest.raises(TypeError, match="all_reduce.* takes tensors. Got int: 1"):
        dist.all_reduce(1)
    with pytest.raises(ValueError, match="lists of one. Got 2"):
        dist.all_gather([1, 2], holdfast.zeros(1))
    with pytest.raises(RuntimeError, match="twice"):
        dist.init_process_group("gloo")


def test_without_a_group():
    assert not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier):
        with pytest.raises(RuntimeError, match="init_process_group"):
            call()
    with pytest.raises(RuntimeError, match="init_process_group"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))


def test_several_processes_are_refused(monkeypatch):
    with pytest.raises(errors.UnsupportedError, match="Got world_size=4"):
        dist.init_process_group("nccl", rank=0, world_size=4)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(errors.UnsupportedError, match="Got world_size=2"):
        dist.init_process_group("gloo")
    assert not dist.is_initialized()


def test_wrappers_call_their_module(group):
    layer, x = nn.Linear(2, 2), holdfast.ones(1, 2)
    expected = layer(x).tolist()
    parallel = nn.DataParallel(layer)
    assert parallel(x).tolist() == expected and parallel.device_ids == []
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    ddp = nn.parallel.DistributedDataParallel(layer)
    with ddp.no_sync():
        assert not ddp.require_backward_grad_sync
        assert ddp(x).tolist() == expected
    assert ddp.module is layer
    assert nn.parallel.data_parallel(layer, (x,)).tolist() == expected
    with pytest.raises(AssertionError, match="names a GPU"):
        nn.parallel.DistributedDataParallel(layer, device_ids=[0])
    with pytest.raises(AssertionError, match="names a GPU"):
        nn.parallel.DistributedDataParallel(layer, device_ids=[0, 1])
    outputs = nn.parallel.parallel_apply([layer, layer], [x, (x,)])
    assert nn.parallel.gather(outputs, "cpu").tolist() == expected * 2
