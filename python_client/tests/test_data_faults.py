# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What goes wrong in workers, what they leave behind, and training beside them."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from data_examples import Arrays, Fails, Slow, Stream, Tensors, fail_to_start

import holdfast
from holdfast.utils import data

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def open_memory():
    """Files of batches that this process has open."""
    names = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:
            continue
    return [name for name in names if "holdfast-batches" in name]


def assert_nothing_is_left():
    gc.collect()
    assert multiprocessing.active_children() == []
    assert open_memory() == []


@pytest.mark.parametrize(
    "how,kind,text",
    [
        ("value_error", ValueError, "index five is bad"),
        ("key_error", KeyError, "absent"),
        ("two_arguments", RuntimeError, "Caught TwoArguments"),
        ("unpicklable_kind", RuntimeError, "Caught Local"),
    ],
)
def test_errors_keep_their_type_and_traceback(how, kind, text):
    loader = iter(data.DataLoader(Fails(how), 2, num_workers=2))
    assert [next(loader).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(kind) as caught:
        next(loader)
    message = str(caught.value)
    assert text in message
    assert "in DataLoader worker process 0.\nOriginal Traceback (most" in message
    assert f"in {how}" in message  # the user's line
    assert next(loader).tolist() == [6, 7]
    del loader, caught
    assert_nothing_is_left()


def test_a_failing_start():
    loader = data.DataLoader(Arrays(4), num_workers=2, worker_init_fn=fail_to_start)
    with pytest.raises(OSError, match="no start for 0"):
        next(iter(loader))


def test_an_unpicklable_batch():
    loader = data.DataLoader(
        range(3), num_workers=1, collate_fn=lambda samples: lambda: samples
    )
    with pytest.raises(Exception, match="in DataLoader worker process 0") as caught:
        list(loader)
    assert "pickle" in str(caught.value)


def test_a_killed_worker_is_named():
    with pytest.raises(RuntimeError, match="is killed by signal: Killed") as caught:
        list(data.DataLoader(Fails("killed"), 2, num_workers=2))
    assert "exited unexpectedly" in str(caught.value) and "pid" in str(caught.value)
    with pytest.raises(RuntimeError, match="ended with status 3"):
        list(data.DataLoader(Fails("exits"), 2, num_workers=2))
    del caught
    assert_nothing_is_left()


def test_a_worker_killed_from_outside_and_the_next_pass():
    loader = data.DataLoader(Slow(), 4, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    victim = multiprocessing.active_children()[0]
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"pid {victim.pid}"):
        for _ in batches:
            pass
    assert tuple(next(iter(loader)).shape) == (4, 1000)
    del batches, loader
    assert_nothing_is_left()


def test_the_time_limit():
    loader = data.DataLoader(Fails("hangs"), 2, num_workers=1, timeout=1)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        list(loader)
    assert_nothing_is_left()


def test_leaving_early_leaves_nothing():
    for dataset in (Slow(), Tensors(40)):
        for _ in data.DataLoader(dataset, 2, num_workers=2):
            break
    assert_nothing_is_left()


def run(code, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=os.path.dirname(__file__),
        **options,
    )


INTERRUPTED = """
    import os, signal, sys, threading, time
    import multiprocessing
    import holdfast
    from data_examples import Slow
    from holdfast.utils import data
    holdfast.connect({address!r})
    loader = iter(data.DataLoader(Slow(), 8, num_workers=2))
    next(loader)
    print(*(p.pid for p in multiprocessing.active_children()), flush=True)
    {then}
"""


def gone(pids):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "then,status",
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        (
            "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "    [None for _ in loader]",
            -signal.SIGINT,
        ),
        ("raise SystemExit(4)", 4),
    ],
    ids=["killed", "interrupted", "exits"],
)
def test_no_process_outlives_the_program(daemon, transport, then, status):
    code = INTERRUPTED.format(address=daemon.address(transport), then=then)
    result = run(code)
    assert result.returncode == status, result.stderr
    assert gone([int(pid) for pid in result.stdout.split()])


def test_training_goes_on_while_workers_come_and_go():
    """Workers forked under a live connection, in a program that trains."""
    holdfast.manual_seed(0)
    model = holdfast.nn.Linear(3, 1)
    optimizer = holdfast.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for workers in (0, 2):
        holdfast.manual_seed(1)
        with holdfast.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.1)
        losses.append([])
        dataset = Tensors(24)
        for _ in range(3):
            loader = data.DataLoader(dataset, 6, shuffle=True, num_workers=workers)
            for rows, _, _ in loader:
                optimizer.zero_grad()
                loss = (model(rows) - 1).square().mean()
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
    assert losses[0] == losses[1] and len(losses[0]) == 12
    assert_nothing_is_left()


def test_two_loaders_at_once():
    one = data.DataLoader(Arrays(12), 3, num_workers=2)
    two = data.DataLoader(Stream(12), 3, num_workers=2)
    pairs = list(zip(one, two, strict=True))
    assert len(pairs) == 4
    assert_nothing_is_left()
