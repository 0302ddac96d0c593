# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Eight programs at once, each after another part of the daemon, while it is watched,
administered and reconfigured. `./dev test --tsan --python -k eight_clients` looks for
races; HOLDFAST_EIGHT_CLIENTS_SECONDS makes it longer than its few seconds."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request

import holdfast
from holdfast.commands._daemon import ask_admin
from holdfast.daemon import Daemon

SECONDS = float(os.environ.get("HOLDFAST_EIGHT_CLIENTS_SECONDS", 4))
START = """
import sys, time
import numpy as np
import holdfast as torch
local, remote, until = sys.argv[1], sys.argv[2], float(sys.argv[3])
rounds = 0
def more():
    global rounds
    rounds += 1
    return rounds < 3 or time.time() < until
"""
TRAIN = """
with torch.connect({address}):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(),
                              torch.nn.Dropout(0.2), torch.nn.Linear(30, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 20), torch.randint(0, 3, (64,))
    first = last = torch.nn.functional.cross_entropy(net(x), y).item()
    while more():
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        last = loss.item()
    assert last < first, (first, last)
"""
CLIENTS = {
    "a trainer": TRAIN.format(address="local"),
    "a distant trainer": TRAIN.format(address="remote"),
    "one that moves much": """
        torch.connect(remote)
        array = np.arange(2_000_000, dtype=np.float32)
        while more():
            x = torch.tensor(array)
            y = (x + 1).numpy()
            assert y[-1] == array[-1] + 1 and (x[x > 1_999_990]).numel() == 9
        """,
    "a publisher": """
        torch.connect(local)
        while more():
            values = {"v": torch.full((3000,), float(rounds)), "n": rounds}
            torch.publish("eight", values, durable=rounds % 2 == 0)
            if rounds % 7 == 0:
                torch.unpublish("eight")
        """,
    "a reader": """
        torch.connect(remote)
        while more():
            try:
                found = torch.lookup("eight")
            except LookupError:
                continue
            assert (found["v"] == found["n"]).all().item()
            torch.published()
        """,
    "one that leaves and comes back": """
        count = 0
        while more():
            torch.connect(local if rounds % 2 else remote, session="eight")
            if count == 0:
                torch.keep("x", torch.zeros(100))
            assert torch.kept("x")[3].item() == count, count
            torch.kept("x").add_(1)
            count += 1
            torch.detach()
        """,
    "one that comes and goes": """
        while more():
            for address in (local, remote):
                session = torch.connect(address, grace=0)
                x = torch.ones(1000, requires_grad=True)
                (x * 2).sum().backward()
                session._stats()
                if rounds % 3:
                    session.close()
        """,
    "one with hooks and profiles": """
        torch.connect(local)
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        while more():
            with torch.profiler.profile() as profile:
                x = torch.ones(50, requires_grad=True)
                y = Double.apply(x)
                y.register_hook(lambda g: g + 1)
                y.sum().backward()
                assert x.grad.tolist() == [4.0] * 50
            assert profile.key_averages()
        """,
}


def watch(daemon, config, stop):
    """Everything that looks at the daemon, or changes it, from outside."""
    pages = ["metrics", "api/status", "healthz", "readyz", ""]
    process = daemon.process.pid
    count = 0
    while not stop.is_set():
        count += 1
        for page in pages:
            url = f"http://{daemon.http_address}/{page}"
            assert urllib.request.urlopen(url, timeout=60).status == 200
        limits = {"weight": 1 + count % 3, "memory_bytes": (4 + count % 2) << 30}
        ask_admin(daemon.shm_address, "set_limits", user="", limits=limits)
        config.write_text(f"default_limits {{ max_sessions: {100 + count} }}")
        os.kill(process, signal.SIGHUP)


def test_eight_clients(tmp_path):
    config = tmp_path / "config"
    config.write_text("")
    flags = [
        "--http=127.0.0.1:0",
        f"--config={config}",
        f"--state_dir={tmp_path}/state",
    ]
    with Daemon(*flags) as daemon:
        until = str(time.time() + SECONDS)
        addresses = [daemon.shm_address, daemon.grpc_address]
        running = {
            name: subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    START + textwrap.dedent(code),
                    *addresses,
                    until,
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
            for name, code in CLIENTS.items()
        }
        stop = threading.Event()
        failed = []

        def watch_all():
            try:
                watch(daemon, config, stop)
            except Exception as error:
                failed.append(repr(error))

        watcher = threading.Thread(target=watch_all)
        watcher.start()
        try:
            for name, client in running.items():
                _, errors = client.communicate(timeout=SECONDS + 300)
                if client.returncode:
                    failed.append(f"{name}: {errors[-1500:]}")
        finally:
            stop.set()
            watcher.join()
            for client in running.values():
                client.kill()
        assert failed == []
    # Another one goes on with what that one saved.
    with Daemon(*flags) as daemon:
        with holdfast.connect(daemon.shm_address, session="eight") as session:
            assert session.attached and holdfast.kept("x")[0].item() > 0
