# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A connection that breaks in the middle of training costs nothing."""

import ast
import random
import threading
import time

import pytest
from programs import run_client, start_client
from proxy import Proxy

# Dropout and in-place updates: a batch applied twice, or not at all, shows.
TRAIN = """
import hashlib
import holdfast as torch
from holdfast import nn
torch.manual_seed(3)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Flatten(), nn.Dropout(0.3), nn.Linear(4 * 5 * 5, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.rand(32, 1, 12, 12), torch.randint(0, 10, (32,))
for step in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step % {read_every} == 0:
        assert loss.item() == loss.item()
digest = hashlib.sha256()
for name, p in model.state_dict().items():
    digest.update(p.numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize("read_every", [1, 25])
def test_weights_are_bit_identical_after_many_cuts(daemon, read_every):
    code = TRAIN.format(steps=200, read_every=read_every)
    undisturbed = run_client(code, daemon.listen)
    proxy = Proxy(daemon.listen, cut_every=20_000)
    try:
        assert run_client(code, proxy.address) == undisturbed
    finally:
        proxy.close()
    assert proxy.cuts >= 3, f"only {proxy.cuts} cuts over {proxy.bytes} bytes"


def test_cuts_at_random_moments(daemon):
    code = TRAIN.format(steps=1000, read_every=10)
    undisturbed = run_client(code, daemon.listen)
    proxy = Proxy(daemon.listen)
    stop = threading.Event()

    def cut_often():
        # Some of what a connection carries must come through, however slow the
        # machine is: by bytes, not by time.
        rng, cut_at = random.Random(5), 0
        while not stop.wait(0.03):
            if proxy.bytes >= cut_at:
                proxy.cut()
                cut_at = proxy.bytes + rng.randrange(5_000, 60_000)

    cutter = threading.Thread(target=cut_often)
    cutter.start()
    try:
        assert run_client(code, proxy.address) == undisturbed
    finally:
        stop.set()
        cutter.join()
        proxy.close()
    assert proxy.cuts >= 2


def test_same_result_on_both_transports(daemon):
    code = TRAIN.format(steps=30, read_every=10)
    assert run_client(code, daemon.listen) == run_client(code, daemon.address("shm"))


def test_big_transfers_survive_cuts(daemon):
    # Each transfer is repeated from its start, so it must fit between cuts.
    proxy = Proxy(daemon.listen, cut_every=20_000_000)
    code = """
import numpy as np, holdfast
for i in range(6):
    a = np.arange(2_000_000, dtype=np.float32) + i
    assert np.array_equal((holdfast.from_numpy(a) + 1).numpy(), a + 1)
print("done")
"""
    try:
        assert run_client(code, proxy.address).strip() == "done"
    finally:
        proxy.close()
    assert proxy.cuts >= 1


def test_a_first_connection_that_breaks_is_tried_again(daemon):
    """More often than where nobody listens, which is told soon."""
    proxy = Proxy(daemon.listen)
    proxy.breaking = 15
    code = """
import holdfast
with holdfast.connect(timeout=60):
    print(holdfast.ones(3).sum().item())
"""
    try:
        assert run_client(code, proxy.address).strip() == "3.0"
    finally:
        proxy.close()
    assert proxy.breaking == 0


def test_gone_for_good_is_an_error_in_bounded_time(daemon):
    proxy = Proxy(daemon.listen)
    code = f"""
import time, holdfast
holdfast.connect("{proxy.address}", reconnect_timeout=5)
a = holdfast.ones(3)
a.sum().item()
print("ready", flush=True)
input()
start = time.monotonic()
try:
    (a + 1).sum().item()
except holdfast.errors.DaemonUnavailableError as e:
    print(time.monotonic() - start)
"""
    client = start_client(code, proxy.address)
    assert client.stdout.readline().strip() == "ready"
    proxy.close()
    time.sleep(0.1)
    out, _ = client.communicate("\n", timeout=120)
    assert float(out) < 60


def test_profile_across_cuts(daemon):
    """Every op is recorded once, and the way there is not lost."""
    proxy = Proxy(daemon.listen, cut_every=20_000)
    code = """
import holdfast
x = holdfast.ones(5)
with holdfast.profiler.profile(record_shapes=True) as prof:
    for i in range(5000):
        x = x + 1
        if i % 100 == 0:
            x.sum().item()
print({a.key: a.count for a in prof.key_averages()})
numbers = [e.sequence_nr for e in prof.events() if e.name != "read"]
print(numbers == list(range(numbers[0], numbers[0] + 5050)))
print(all(e.submit_range is not None for e in prof.events()))
"""
    try:
        counts, in_order, tied = run_client(code, proxy.address).splitlines()
    finally:
        proxy.close()
    assert ast.literal_eval(counts) == {"add": 5000, "sum": 50, "read": 50}
    assert (in_order, tied) == ("True", "True")
    assert proxy.cuts >= 3
