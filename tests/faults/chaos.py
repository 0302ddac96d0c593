# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Cuts and kills by the thousand: ./dev chaos.

cuts   a program trains through a proxy that cuts its connection at random; its
       weights must end bit-identical to an undisturbed run's
bulk   a program reads and uploads tensors of a megabyte and more through such a proxy
       and compares each
kills  clients of both transports are killed while they submit; no byte and no
       descriptor of theirs may stay, and a bystander must not stall
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from chaos_proxy import ChaosProxy
from programs import Daemon, run_client, start_client

# Dropout and in-place updates: a batch applied twice, or not at all, shows.
TRAIN = """
import hashlib
import holdfast as torch
from holdfast import nn
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Dropout(0.3), nn.Linear(24, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, y = torch.rand(32, 12), torch.randint(0, 4, (32,))
for step in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        loss.item()
digest = hashlib.sha256()
for p in model.state_dict().values():
    digest.update(p.numpy().tobytes())
print(digest.hexdigest())
"""


def run_cuts(daemon, cuts, seed=0):
    """Trains while at least `cuts` connections are cut; returns figures."""
    # A step sends half a kilobyte to a kilobyte.
    code = TRAIN.format(steps=cuts * 6)
    start = time.monotonic()
    undisturbed = run_client(code, daemon.listen, timeout=3600)
    quiet = time.monotonic() - start
    proxy = ChaosProxy(daemon.listen, seed=seed, every=2_000, cuts=cuts)
    start = time.monotonic()
    try:
        cut = run_client(code, proxy.address, timeout=3600)
    finally:
        proxy.close()
    return {
        "cuts": proxy.cuts,
        "events": dict(proxy.events),
        "identical": cut == undisturbed,
        "seconds": round(time.monotonic() - start, 1),
        "undisturbed_seconds": round(quiet, 1),
    }


TRANSFER = """
import numpy as np
import holdfast as torch
base = np.arange({elements}, dtype=np.float32)
x = torch.from_numpy(base.copy())
for i in range({rounds}):
    a = base + i
    if i % 2:
        y = x + i
    else:
        y = torch.from_numpy(a)
    assert np.array_equal(y.numpy(), a), i
print("equal")
"""


def run_bulk(daemon, cuts, seed=0, elements=300_000):
    """Large reads and uploads, cut at every place of them; returns figures."""
    every = 4 * elements  # about each second transfer is cut
    proxy = ChaosProxy(daemon.listen, seed, every, cuts, every_down=every)
    start = time.monotonic()
    code = TRANSFER.format(elements=elements, rounds=2 * cuts)
    try:
        out = run_client(code, proxy.address, timeout=3600)
    finally:
        proxy.close()
    return {
        "cuts": proxy.cuts,
        "events": dict(proxy.events),
        "identical": out.strip() == "equal",
        "seconds": round(time.monotonic() - start, 1),
    }


BYSTANDER = """
import time
import holdfast as torch
x = torch.zeros(64)
print("ready", flush=True)
import sys, threading
stop = threading.Event()
def wait():
    sys.stdin.read()
    stop.set()
threading.Thread(target=wait, daemon=True).start()
waits, count = [], 0
while not stop.is_set():
    start = time.perf_counter()
    x.add_(1)
    count += 1
    assert x[0].item() == count % (1 << 24)
    waits.append(time.perf_counter() - start)
    time.sleep(0.005)
print(waits)
"""


def _victim(address, seed):
    """A client that is killed some time: while it submits, reads or frees."""
    import holdfast as torch

    torch.connect(address, grace=0)
    generator = random.Random(seed)
    x = torch.ones(generator.choice((10, 100_000, 600_000)))
    kept = []
    while True:
        y = (x * 2).sum()
        kept.append(x + 1)
        if len(kept) > 8:
            kept.clear()
        if generator.random() < 0.2:
            y.item()


def _resources(daemon):
    stats = daemon.stats()
    folder = f"/proc/{daemon.process.pid}"
    with open(f"{folder}/status") as f:
        lines = dict(line.split(":", 1) for line in f)
    return {
        "sessions": sum(1 for s in stats["sessions"] if s["client"] != "chaos"),
        "bytes_in_use": sum(s["bytes_in_use"] for s in stats["sessions"]),
        "descriptors": len(os.listdir(f"{folder}/fd")),
        "resident_bytes": sum(
            int(lines[k].split()[0]) << 10 for k in ("RssAnon", "RssShmem")
        ),
    }


def _kill_one(address, seed):
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            devnull = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(devnull, fd)
            _victim(address, seed)
        finally:
            os._exit(1)
    time.sleep(random.Random(seed).uniform(0.0, 0.06))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def run_kills(daemon, kills, seed=0, sessions=True):
    """Kills clients of both transports; returns figures.

    sessions: wait also for those whose client was killed between its Hello and its
    stream, for which the daemon waits 30 s. They hold nothing.
    """
    import holdfast  # noqa: F401 - children are forks of this process

    bystander = start_client(BYSTANDER, daemon.listen)
    assert bystander.stdout.readline().strip() == "ready"
    # What a daemon that has seen some clients holds.
    for i in range(8):
        _kill_one(daemon.address(("shm", "grpc")[i % 2]), seed - 1 - i)
    time.sleep(32 if sessions else 1.5)
    before = _resources(daemon)
    start = time.monotonic()
    for i in range(kills):
        _kill_one(daemon.address(("shm", "grpc")[i % 2]), seed + i)
    seconds = time.monotonic() - start
    counted = ["bytes_in_use", "descriptors"] + ["sessions"] * sessions
    deadline = time.monotonic() + 60
    while True:
        after = _resources(daemon)
        settled = all(after[key] <= before[key] for key in counted)
        if settled or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    out, _ = bystander.communicate(timeout=60)
    waits = json.loads(out)
    return {
        "kills": kills,
        "seconds": round(seconds, 1),
        "before": before,
        "after": after,
        "leaked": not settled,
        "bystander_reads": len(waits),
        "bystander_p50_ms": round(statistics.median(waits) * 1e3, 3),
        "bystander_p99_ms": round(sorted(waits)[int(len(waits) * 0.99)] * 1e3, 3),
        "bystander_max_ms": round(max(waits) * 1e3, 3),
    }


def main():
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--bulk", type=int, default=200, help="cuts of transfers")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-chaos-") as folder:
        daemon = Daemon(Path(folder), "--log_level=error")
        failed = False
        if args.cuts:
            figures = run_cuts(daemon, args.cuts, args.seed)
            print("cuts:", json.dumps(figures, indent=2), flush=True)
            failed |= not figures["identical"] or figures["cuts"] < args.cuts
        if args.bulk:
            figures = run_bulk(daemon, args.bulk, args.seed)
            print("bulk:", json.dumps(figures, indent=2), flush=True)
            failed |= not figures["identical"] or figures["cuts"] < args.bulk
        if args.kills:
            figures = run_kills(daemon, args.kills, args.seed)
            print("kills:", json.dumps(figures, indent=2), flush=True)
            failed |= figures["leaked"]
        daemon.stop()
    print("FAILED" if failed else "all is well")
    return 1 if failed else 0


if __name__ == "__main__":
    threading.stack_size(256 << 10)
    sys.exit(main())
