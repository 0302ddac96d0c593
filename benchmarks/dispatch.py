# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Cost of sending, running and reading tiny ops.

  submit            a + b, 10 floats: the Python call alone
  sustained         the same, submitted and executed, per op
  backward          10 x mul + sum + backward, submitted and executed
  user code         one call of Python from backward: a chain of 100 hooks
  item hot / idle   .item() round trip, back to back / after a pause of 3 ms
  item asleep       the same after 0.3 ms: both sides sleep, caches are warm
  item grpc         the same over gRPC on loopback
  pipelined grpc    a + b over gRPC, ops per second
  start             import holdfast + connect to a running daemon
  idle daemon       processor time of a daemon with 10 idle sessions
"""

import json
import os
import statistics
import subprocess
import sys
import time

import daemon
import peer
import report


def best_of(repeats, run):
    """Least of several measurements: the machine's noise only adds."""
    return min(run() for _ in range(repeats))


def submit_ns(torch, n):
    a, b = torch.ones(10), torch.ones(10)

    def run():
        synchronize(torch)
        start = time.perf_counter()
        for _ in range(n):
            c = a + b  # noqa: F841
        return (time.perf_counter() - start) / n * 1e9

    return best_of(15, run)


def sustained_ns(torch, n):
    a, b = torch.ones(10), torch.ones(10)

    def run():
        synchronize(torch)
        start = time.perf_counter()
        for _ in range(n):
            c = a + b  # noqa: F841
        synchronize(torch)
        return (time.perf_counter() - start) / n * 1e9

    return best_of(5, run)


def backward_us(torch, n):
    x = torch.ones(10, requires_grad=True)

    def run():
        synchronize(torch)
        start = time.perf_counter()
        for _ in range(n):
            y = x
            for _ in range(10):
                y = y * 1.01
            y.sum().backward()
            x.grad = None
        synchronize(torch)
        return (time.perf_counter() - start) / n * 1e6

    return best_of(5, run)


def user_code_us(torch, n):
    """Per hook: the call, and the ops that lie between two."""
    hooks = 100
    x = torch.ones(10, requires_grad=True)

    def run():
        y = x
        for _ in range(hooks):
            y = y * 1.01
            y.register_hook(lambda gradient: None)
        y = y.sum()
        synchronize(torch)
        start = time.perf_counter()
        y.backward()
        synchronize(torch)
        return (time.perf_counter() - start) / hooks * 1e6

    return statistics.median(run() for _ in range(n))


def item_us(torch, n, pause=0.0):
    x = torch.ones(1)
    times = []
    for _ in range(n):
        if pause:
            time.sleep(pause)
        start = time.perf_counter()
        x.item()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def synchronize(torch):
    if hasattr(torch, "synchronize"):
        torch.synchronize()


def start_ms(address):
    code = (
        "import time; t = time.perf_counter(); import holdfast; "
        f"holdfast.connect('{address}'); print((time.perf_counter() - t) * 1e3)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], stdout=-1).stdout)
        for _ in range(5)
    ]
    return statistics.median(runs)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_percent(address, pid, seconds):
    code = (
        "import holdfast, sys; "
        f"holdfast.connect('{address}'); holdfast.ones(3).sum().item(); "
        "print(flush=True); sys.stdin.read()"
    )
    clients = [
        subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1)
        for _ in range(10)
    ]
    for c in clients:
        c.stdout.readline()
    before = cpu_seconds(pid)
    time.sleep(seconds)
    used = cpu_seconds(pid) - before
    for c in clients:
        c.communicate()
    return used / seconds * 100


def run_peer(args):
    import torch

    torch.set_num_threads(peer.threads())
    n = 2000 if args.quick else 20000
    print(
        json.dumps(
            {
                "submit": submit_ns(torch, n),
                "sustained": sustained_ns(torch, n),
                "backward": backward_us(torch, n // 20),
                "user_code": user_code_us(torch, 50),
                "item": item_us(torch, 1000),
            }
        )
    )


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", action="store_true", help="measure PyTorch here")
    args = p.parse_args()
    if args.peer:
        return run_peer(args)
    flags = ["--quick"] if args.quick else []
    torch = peer.measure("dispatch.py", *flags)
    import holdfast

    n = 5000 if args.quick else 200000
    r = report.Report(
        f"dispatch: {peer.threads()} threads, peer PyTorch {peer.version()}"
    )
    with daemon.running() as d:
        local = "unix:" + d["socket"]
        holdfast.connect(local)
        for _ in range(2000):  # warm up
            holdfast.ones(10) + 1
        r.add(
            "submit a + b",
            submit_ns(holdfast, 1000),
            "ns",
            torch.get("submit"),
            target=250,
        )
        r.add(
            "sustained a + b",
            sustained_ns(holdfast, n),
            "ns/op",
            torch.get("sustained"),
            target_ratio=0.5,
        )
        r.add(
            "10 x mul + sum + backward",
            backward_us(holdfast, n // 40),
            "us",
            torch.get("backward"),
            target_ratio=0.5,
        )
        r.add(
            "user code in backward, per call",
            user_code_us(holdfast, 50),
            "us",
            torch.get("user_code"),
            target=50,
        )
        r.add(
            "item, hot, p50",
            item_us(holdfast, n // 20),
            "us",
            torch.get("item"),
            target=5,
        )
        r.add(
            "item, from idle, p50",
            item_us(holdfast, 300, pause=0.003),
            "us",
            target=40,
        )
        r.add("item, asleep, p50", item_us(holdfast, 1000, pause=0.0003), "us")
        holdfast.disconnect()
        holdfast.connect(d["listen"])
        r.add("item, gRPC, p50", item_us(holdfast, 3000), "us", target=150)
        r.add(
            "pipelined a + b, gRPC",
            1e9 / sustained_ns(holdfast, n),
            "ops/s",
            target=1e6,
            higher=True,
        )
        holdfast.disconnect()
        r.add("import + connect", start_ms(local), "ms", target=150)
        r.add(
            "idle daemon, 10 sessions",
            idle_percent(local, d["pid"], 2 if args.quick else 5),
            "% of a core",
            target=1,
        )
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
