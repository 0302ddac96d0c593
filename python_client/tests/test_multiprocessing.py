# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors that several processes have, and several processes that train one model."""

import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import holdfast
from holdfast import multiprocessing as mp
from holdfast import nn, optim

TIMEOUT = 60


@pytest.fixture(params=["spawn", "fork"])
def context(request, torch):
    return mp.get_context(request.param)


def started(context, target, *args):
    process = context.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def ended(process):
    process.join(TIMEOUT)
    assert process.exitcode == 0


# ---- what the processes do: at the top of a module, as spawned ones want it


def add_one(incoming, outgoing):
    tensor = incoming.get(timeout=TIMEOUT)
    tensor += 1
    holdfast.synchronize()
    outgoing.put(tensor.sum())
    outgoing.put("done")
    incoming.get(timeout=TIMEOUT)  # until the parent has opened it


def test_a_queue_shares_memory(context, torch):
    there, back = context.Queue(), context.Queue()
    process = started(context, add_one, there, back)
    x = torch.arange(6.0).view(2, 3)
    there.put(x.t())
    total = back.get(timeout=TIMEOUT)
    assert total.item() == 21 and back.get(timeout=TIMEOUT) == "done"
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x.is_shared() and total.is_shared() and not torch.ones(1).is_shared()
    there.put("over")
    ended(process)
    # What it opened, and what it made, is still there.
    assert x.sum().item() == total.item() == 21


def describe(questions, answers):
    answers.put([describe_one(t) for t in questions.get(timeout=TIMEOUT)])


def describe_one(t):
    kind = type(t).__name__
    layout = tuple(t.shape), t.stride(), t.storage_offset(), str(t.dtype)
    return kind, layout, t.requires_grad, t.detach().float().sum().item(), t.__dict__


def some_tensors(torch):
    weight = nn.Parameter(torch.ones(3), requires_grad=False)
    weight.note = "kept"
    return [
        torch.arange(12.0).reshape(3, 4)[1:, ::2],
        torch.tensor(2.5),
        torch.empty(0, 3),
        torch.ones(5).bfloat16(),
        torch.ones(2, requires_grad=True),
        nn.Parameter(torch.ones(2)),
        weight,
        torch.randint(0, 9, (7,)),
        torch.nonzero(torch.tensor([1.0, 0, 1])),
    ]


def test_messages_keep_type_and_layout(context, torch):
    tensors = some_tensors(torch)
    questions, answers = context.Queue(), context.Queue()
    process = started(context, describe, questions, answers)
    questions.put(tensors)
    seen = answers.get(timeout=TIMEOUT)
    ended(process)
    assert seen == [describe_one(t) for t in tensors]


def test_a_token_travels_and_not_the_elements(torch):
    x = torch.ones(1_000_000)
    assert len(bytes(ForkingPickler.dumps(x))) < 1000
    assert len(pickle.dumps(x)) > 4_000_000
    copy = pickle.loads(pickle.dumps(x))
    copy += 1
    assert x[0].item() == 1
    twin = ForkingPickler.loads(ForkingPickler.dumps(x))
    twin += 1
    assert x[0].item() == 2 and x._session.id == twin._session.id


def test_what_is_on_its_way_stays(torch):
    message = ForkingPickler.dumps(torch.arange(3))  # nobody else has it
    torch.synchronize()
    assert ForkingPickler.loads(message).tolist() == [0, 1, 2]
    with pytest.raises(LookupError, match="no shared tensor has that token"):
        ForkingPickler.loads(message).tolist()


def test_results_of_recorded_ops_are_refused(torch):
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        ForkingPickler.dumps(y)
    assert ForkingPickler.loads(ForkingPickler.dumps(y.detach())).item() == 2


def test_numpy_of_anothers_tensor_is_a_copy(torch):
    x = torch.zeros(300_000)  # more than travels inline
    twin = ForkingPickler.loads(ForkingPickler.dumps(x))
    array = twin.numpy()
    twin += 1
    assert array[0] == 0 and x.sum().item() == 300_000
    x.fill_(5)
    assert twin.mean().item() == x.mean().item()


def bump(tensor, times):
    for _ in range(times):
        tensor += 1
    holdfast.synchronize()


def test_concurrent_writes_are_all_counted(context, torch):
    """In-place ops of several sessions are serialised by the one executor."""
    x = torch.zeros(1000).share_memory_()
    processes = [started(context, bump, x, 200) for _ in range(3)]
    bump(x, 200)
    for process in processes:
        ended(process)
    assert (x == 800).all().item()


SHARED = {}


def write_global():
    SHARED["x"].fill_(7)
    SHARED["model"].weight.data.fill_(3)
    assert SHARED["model"].weight.grad is None
    holdfast.synchronize()


def test_forked_processes_have_what_was_shared(torch):
    SHARED["x"] = torch.zeros(3).share_memory_()
    SHARED["model"] = nn.Linear(2, 1).share_memory()
    assert SHARED["x"].is_shared() and SHARED["model"].weight.is_shared()
    SHARED["model"](torch.ones(1, 2)).sum().backward()
    ended(started(mp.get_context("fork"), write_global))
    assert SHARED["x"].tolist() == [7, 7, 7]
    assert SHARED["model"].weight.tolist() == [[3, 3]]
    SHARED.clear()


def offer_and_wait(queue, address):
    if holdfast.current_session().closed:  # forked
        holdfast.connect(address)
    queue.put(holdfast.ones(300_000))
    time.sleep(TIMEOUT)


def test_the_makers_death_takes_nothing_away(context, torch, daemon, transport):
    queue = context.Queue()
    process = started(context, offer_and_wait, queue, daemon.address(transport))
    x = queue.get(timeout=TIMEOUT)
    x += 1
    assert x.sum().item() == 600_000
    os.kill(process.pid, signal.SIGKILL)
    process.join(TIMEOUT)
    time.sleep(0.2)
    x += 1
    assert x.sum().item() == 900_000
    assert (x * x).mean().item() == 9


def test_an_openers_death_frees_its_share(context, torch):
    x = torch.zeros(1 << 20)
    queue, back = context.Queue(), context.Queue()
    process = started(context, hold_forever, queue, back)
    queue.put(x)
    assert back.get(timeout=TIMEOUT) == "open"
    before = torch.memory_allocated()
    del x
    torch.synchronize()
    assert torch.memory_allocated() >= before - 1024  # it is ours to pay for
    os.kill(process.pid, signal.SIGKILL)
    process.join(TIMEOUT)
    deadline = time.monotonic() + 60
    while torch.memory_allocated() > before - (1 << 20):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hold_forever(queue, back):
    tensor = queue.get(timeout=TIMEOUT)
    tensor.sum().item()
    back.put("open")
    time.sleep(TIMEOUT)


# ---- Hogwild


def data(seed, count=64):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 8)).astype("float32")
    y = (x @ np.linspace(-1, 1, 8, dtype="float32")[:, None] > 0).astype("float32")
    return holdfast.tensor(x), holdfast.tensor(y)


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def loss_of(model):
    x, y = data(999, 500)
    with holdfast.no_grad():
        return nn.functional.binary_cross_entropy_with_logits(model(x), y).item()


def train(rank, model, steps=60):
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in range(steps):
        x, y = data(1000 * rank + step)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
    holdfast.synchronize()


def test_hogwild_converges(context, torch):
    model = net().share_memory()
    start = loss_of(model)
    processes = [started(context, train, rank, model) for rank in range(2)]
    for process in processes:
        ended(process)
    together = loss_of(model)
    assert together < 0.3 < 0.6 < start
    assert all(p.grad is None for p in model.parameters())


HOGWILD = """
import sys
import torch
import torch.multiprocessing as mp

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(x)

def train(rank, model):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(100):
        x = torch.randn(32, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())

if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        mp.set_start_method("spawn")
    model = Net()
    model.share_memory()
    processes = []
    for rank in range(2):
        p = mp.Process(target=train, args=(rank, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
        assert p.exitcode == 0
    x = torch.eye(4)
    error = (model(x) - 1).abs().max().item()
    print(type(model.fc.weight).__module__)
    assert error < 0.05, error
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_an_unchanged_hogwild_program(method, tmp_path):
    """With a private daemon, which the processes share."""
    script = tmp_path / "hogwild.py"
    script.write_text(HOGWILD)
    env = {k: v for k, v in os.environ.items() if k != "HOLDFAST_ADDRESS"}
    env["HOLDFAST_SOCKET"] = str(tmp_path / "nobody.sock")
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", str(script), method],
        capture_output=True,
        text=True,
        env=env,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 2 and "holdfast" in done.stdout


# ---- spawn, Pool


def double(x):
    return (x * 2).sum().item()


def test_pool(context, torch):
    with context.Pool(2) as pool:
        assert pool.map(double, [torch.ones(n) for n in range(1, 5)]) == [2, 4, 6, 8]


def fail(rank, how):
    if rank == 1 and how == "raise":
        raise ValueError("no luck")
    if rank == 1 and how == "exit":
        sys.exit(3)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(TIMEOUT)


def test_spawn_raises_what_a_process_raised(torch):
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: no luck") as info:
        mp.spawn(fail, args=("raise",), nprocs=2)
    assert info.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="exit code 3") as info:
        mp.spawn(fail, args=("exit",), nprocs=2)
    assert info.value.exit_code == 3
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL") as info:
        mp.spawn(fail, args=("kill",), nprocs=2)
    assert pickle.loads(pickle.dumps(info.value)).signal_name == "SIGKILL"


def fill_row(rank, x):
    x[rank] = rank
    holdfast.synchronize()


def test_spawn_shares_its_arguments(torch):
    x = torch.zeros(3, 2)
    mp.spawn(fill_row, args=(x,), nprocs=3)
    assert x.tolist() == [[0, 0], [1, 1], [2, 2]]
    running = mp.spawn(fill_row, args=(x,), nprocs=1, join=False)
    assert len(running.pids()) == 1
    while not running.join(timeout=1):
        pass


def test_strategies(torch):
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    with pytest.raises(ValueError, match="file_descriptor"):
        mp.set_sharing_strategy("pigeon")
