# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Representative ops at three sizes, time against PyTorch's.

Sizes are 1e3, 1e6 and 3e7 float32 elements (of the largest operand); matrix and
neural ops have typical shapes. Each figure is the best of several rounds, a round
being as many calls as take ten milliseconds, submitted and executed. The two
sides take turns op by op, each in a process of its own, so that a machine whose
speed changes changes both. The geometric mean of the ratios should be at most 1,
and no op above 1.5.

For memory-bound ops the table adds the share of memory's bandwidth that they
reach, measured by two threads that copy blocks with memcpy; bytes read and
written count.

  --only REGEX  cases whose name it is found in, such as "sum" or "^add, 1e6"
  --rounds N    take turns N times, and the best of each side
"""

import json
import os
import re
import subprocess
import sys
import threading
import time

import daemon
import op_calls
import peer
import report


def seconds(call, synchronize, budget):
    """Per call: the best of rounds of ten milliseconds or more. How many calls
    that takes follows from the best so far: a first call that had to wait for a
    processor would make rounds of a few calls, which wait as long."""

    def round_of(calls):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize()
        return time.perf_counter() - start

    round_of(1)
    best, spent, rounds = round_of(1), 0.0, 0
    while rounds < 3 or (spent < budget and rounds < 20):
        calls = max(1, min(5000, int(0.01 / max(best, 1e-7))))
        took = round_of(calls)
        best, spent, rounds = min(best, took / calls), spent + took, rounds + 1
    return best


class Side:
    """One library's calls; those of one group of op_calls are alive at a time."""

    def __init__(self, torch, synchronize, budget):
        self.torch, self.synchronize, self.budget = torch, synchronize, budget
        self.group, self.cases = None, {}

    def names(self, group):
        if group != self.group:
            self.cases = {}  # its memory first
            self.torch.manual_seed(0)
            self.group, self.cases = group, op_calls.calls(self.torch, group)
        return list(self.cases)

    def time(self, group, name):
        self.names(group)
        return seconds(self.cases[name], self.synchronize, self.budget)


class Peer:
    """PyTorch in a process of its own, or nothing where it cannot be imported."""

    def __init__(self, budget):
        self.process = subprocess.Popen(
            [peer.python(), os.path.abspath(__file__), "--peer", str(budget)],
            env=dict(os.environ, OMP_NUM_THREADS=str(peer.threads())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.present = self.process.stdout.readline().strip() == "ready"
        if not self.present:
            print("PyTorch was not measured (see above)", file=sys.stderr)

    def time(self, group, name):
        if not self.present:
            return None
        print(json.dumps([group, name]), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def serve_peer(budget):
    """Times what standard input asks for, a line each."""
    import torch

    torch.set_num_threads(peer.threads())
    side = Side(torch, lambda: None, budget)
    print("ready", flush=True)
    with torch.no_grad():
        for line in sys.stdin:
            print(side.time(*json.loads(line)), flush=True)
    return 0


def copy_bandwidth(n_bytes=120_000_000):
    """Bytes read and written per second by memcpy, on all threads."""
    import numpy

    parts = peer.threads()
    source = numpy.ones(n_bytes // 8)
    target = numpy.zeros_like(source)
    pairs = list(
        zip(numpy.array_split(target, parts), numpy.array_split(source, parts))
    )

    def run():  # numpy copies without the interpreter's lock
        threads = [threading.Thread(target=numpy.copyto, args=p) for p in pairs]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return time.perf_counter() - start

    return 2 * source.nbytes / min(run() for _ in range(10))


def measure(args, ours, theirs):
    """{"add, 1e6": (seconds, PyTorch's seconds or None)}"""
    results = {}
    for group in op_calls.GROUPS:
        if args.quick and group in ("shapes", "3e7"):
            continue
        for name in ours.names(group):
            full = f"{name}, {group}"
            if not re.search(args.only, full):
                continue
            pairs = [
                (theirs.time(group, name), ours.time(group, name))
                for _ in range(args.rounds)
            ]
            own = min(p[1] for p in pairs)
            other = min(p[0] for p in pairs) if theirs.present else None
            results[full] = own, other
            ratio = f" {own / other:.2f}" if other else ""
            print(f"  {full}: {own * 1e6:.1f} us{ratio}", file=sys.stderr)
    return results


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", type=float, metavar="BUDGET", help="be PyTorch's side")
    p.add_argument(
        "--only", default="", metavar="REGEX", help="cases whose name it is found in"
    )
    p.add_argument("--rounds", type=int, default=1, help="turns per case")
    args = p.parse_args()
    if args.peer:
        return serve_peer(args.peer)
    import holdfast
    import holdfast.linalg
    import holdfast.nn

    budget = 0.03 if args.quick else 0.1
    r = report.Report(f"ops: {peer.threads()} threads, PyTorch {peer.version()}")
    bandwidth = copy_bandwidth()
    theirs = Peer(budget)
    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        with holdfast.no_grad():
            side = Side(holdfast, holdfast.synchronize, budget)
            results = measure(args, side, theirs)
            side.cases = {}
        holdfast.disconnect()
    theirs.close()
    for name, (own, other) in results.items():
        r.add(name, own * 1e6, "us", other and other * 1e6, target_ratio=1.5)
    r.add_geometric_mean(target=1.0)
    for op, share in op_calls.TRAFFIC.items():
        if f"{op}, 3e7" in results:
            moved = share * 2 * 4 * op_calls.SIZES["3e7"]
            reached = moved / results[f"{op}, 3e7"][0] / bandwidth * 100
            r.add(f"{op}, 3e7: of memory bandwidth", reached, "%", None, 80, None, True)
    r.add("memory bandwidth (memcpy)", bandwidth / 1e9, "GB/s")
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
