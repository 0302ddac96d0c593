# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""60 representative ops at three sizes, time against PyTorch's.

Sizes are 1e3, 1e6 and 3e7 float32 elements (of the largest operand); matrix and
neural ops have typical shapes. Each figure is the best of several rounds, a round
being as many calls as take a few milliseconds, submitted and executed. The
geometric mean of the ratios should be at most 1, and no op above 1.5. For
memory-bound ops the table adds the bandwidth relative to a copy's.

  --only TEXT   cases whose name contains TEXT
"""

import json
import math
import sys
import time

import daemon
import peer
import report

SIZES = {"1e3": 1000, "1e6": 1_000_000, "3e7": 30_000_000}
# Arrays read and written, for the bandwidth of memory-bound ops.
TRAFFIC = {"add": 3, "mul scalar": 2, "copy": 2, "relu": 2, "where": 3.25, "add_": 3}


def elementwise(torch, n):
    """name -> a call without arguments, on operands of n elements."""
    side = max(1, int(math.sqrt(n)))
    a, b = torch.rand(n) + 0.5, torch.rand(n) + 0.5
    # Written in place, and kept from growing: functions are slow on huge values.
    target, zeros = torch.rand(n), torch.zeros(n)
    square = torch.rand(side, side)
    row = torch.rand(side)
    mask = a > 1.0
    whole = (a * 100).long()
    index = (torch.rand(n) * n).long()
    rows = (torch.rand(side) * side).long()
    cases = {
        "add": lambda: a + b,
        "add_": lambda: target.add_(zeros),
        "mul scalar": lambda: a * 1.5,
        "div": lambda: a / b,
        "pow 2": lambda: a**2,
        "maximum": lambda: torch.maximum(a, b),
        "add row": lambda: square + row,
        "add transposed": lambda: square + square.t(),
        "gt": lambda: a > b,
        "where": lambda: torch.where(mask, a, b),
        "clamp": lambda: a.clamp(0.6, 1.2),
        "abs": lambda: a.abs(),
        "relu": lambda: a.relu(),
        "exp": lambda: a.exp(),
        "log": lambda: a.log(),
        "sqrt": lambda: a.sqrt(),
        "sin": lambda: a.sin(),
        "tanh": lambda: a.tanh(),
        "sigmoid": lambda: a.sigmoid(),
        "erf": lambda: a.erf(),
        "atan2": lambda: torch.atan2(a, b),
        "lgamma": lambda: a.lgamma(),
        "floor_divide int": lambda: whole // 7,
        "to int64": lambda: a.long(),
        "copy": lambda: a.clone(),
        "contiguous of t": lambda: square.t().contiguous(),
        "cat": lambda: torch.cat([a, b]),
        "flip": lambda: a.flip(0),
        "roll": lambda: a.roll(1),
        "tril": lambda: square.tril(),
        "sum": lambda: a.sum(),
        "sum rows": lambda: square.sum(0),
        "sum columns": lambda: square.sum(1),
        "mean columns": lambda: square.mean(1),
        "var": lambda: a.var(),
        "max": lambda: a.max(),
        "argmax columns": lambda: square.argmax(1),
        "norm": lambda: a.norm(),
        "prod columns": lambda: square.prod(1),
        "cumsum": lambda: a.cumsum(0),
        "logsumexp": lambda: square.logsumexp(1),
        "softmax": lambda: square.softmax(1),
        "index rows": lambda: square[rows],
        "gather": lambda: a.gather(0, index),
        "index_add": lambda: a.index_add(0, index, b),
        "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "mask read": lambda: a[mask],
        "rand": lambda: torch.rand(n),
        "randn": lambda: torch.randn(n),
    }
    if n <= 1_000_000:
        cases["sort"] = lambda: a.sort()
        cases["topk"] = lambda: a.topk(10)
    return cases


def shaped(torch):
    f = torch.nn.functional
    m, v = torch.rand(512, 512), torch.rand(512)
    batch = torch.rand(32, 64, 64)
    image = torch.rand(16, 32, 28, 28)
    kernel, deep = torch.rand(64, 32, 3, 3), torch.rand(32, 1, 3, 3)
    signal, filters = torch.rand(16, 32, 256), torch.rand(64, 32, 5)
    tokens = torch.rand(32, 128, 256)
    weight, bias = torch.rand(256), torch.rand(256)
    mean, spread = torch.zeros(32), torch.ones(32)
    q = torch.rand(4, 8, 128, 64)
    labels = (torch.rand(512) * 512).long()
    table, words = torch.rand(10000, 128), (torch.rand(32, 128) * 10000).long()
    spd = m @ m.t() + torch.eye(512) * 512
    return {
        "matmul 512": lambda: m @ m,
        "matvec 512": lambda: m @ v,
        "bmm 32x64x64": lambda: torch.bmm(batch, batch),
        "linear": lambda: f.linear(tokens, torch_weight(torch), None),
        "conv2d 3x3": lambda: f.conv2d(image, kernel, padding=1),
        "conv2d depthwise": lambda: f.conv2d(image, deep, padding=1, groups=32),
        "conv1d": lambda: f.conv1d(signal, filters),
        "max_pool2d": lambda: f.max_pool2d(image, 2),
        "avg_pool2d": lambda: f.avg_pool2d(image, 2),
        "interpolate bilinear": lambda: f.interpolate(
            image, scale_factor=2, mode="bilinear"
        ),
        "batch_norm": lambda: f.batch_norm(image, mean, spread, training=True),
        "layer_norm": lambda: f.layer_norm(tokens, (256,), weight, bias),
        "gelu": lambda: f.gelu(tokens),
        "silu": lambda: f.silu(tokens),
        "cross_entropy": lambda: f.cross_entropy(m, labels),
        "embedding": lambda: f.embedding(words, table),
        "attention": lambda: attention(torch, q),
        "cholesky 512": lambda: torch.linalg.cholesky(spd),
        "solve 512": lambda: torch.linalg.solve(spd, v),
        "svd 512": lambda: torch.linalg.svdvals(m),
    }


_WEIGHTS = {}


def torch_weight(torch):
    if torch not in _WEIGHTS:
        _WEIGHTS[torch] = torch.rand(512, 256)
    return _WEIGHTS[torch]


def attention(torch, q):
    scores = (q @ q.transpose(-2, -1) * 0.125).softmax(-1)
    return scores @ q


def seconds(call, synchronize, budget):
    """Per call: the best of rounds of at least a few milliseconds."""
    call()
    synchronize()
    start = time.perf_counter()
    call()
    synchronize()
    once = time.perf_counter() - start
    calls = max(1, min(2000, int(0.004 / max(once, 1e-7))))
    best, spent, rounds = once, 0.0, 0
    while rounds < 3 or (spent < budget and rounds < 20):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize()
        took = time.perf_counter() - start
        best, spent, rounds = min(best, took / calls), spent + took, rounds + 1
    return best


def measure(torch, args, synchronize):
    torch.manual_seed(0)
    budget = 0.03 if args.quick else 0.15
    results = {}
    groups = [] if args.quick else [("shapes", shaped(torch))]
    for label, n in SIZES.items():
        if not args.quick or n <= 1_000_000:
            groups.append((label, None))
    for label, cases in groups:
        if cases is None:
            cases = elementwise(torch, SIZES[label])
        for name, call in cases.items():
            full = f"{name}, {label}"
            if args.only in full:
                results[full] = seconds(call, synchronize, budget)
                print(f"  {full}: {results[full] * 1e6:.1f} us", file=sys.stderr)
    return results


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", action="store_true", help="measure PyTorch here")
    p.add_argument("--only", default="", help="cases whose name contains this")
    args = p.parse_args()
    if args.peer:
        import torch

        torch.set_num_threads(peer.threads())
        with torch.no_grad():
            print(json.dumps(measure(torch, args, lambda: None)))
        return 0
    forward = (["--quick"] if args.quick else []) + ["--only", args.only]
    theirs = peer.measure("ops.py", *forward)
    import holdfast
    import holdfast.nn

    r = report.Report(f"ops: {peer.threads()} threads, PyTorch {peer.version()}")
    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        with holdfast.no_grad():
            ours = measure(holdfast, args, holdfast.synchronize)
        holdfast.disconnect()
    ratios = []
    for name, value in ours.items():
        other = theirs.get(name)
        r.add(name, value * 1e6, "us", other and other * 1e6, target_ratio=1.5)
        if other:
            ratios.append(value / other)
    copy = ours.get("copy, 3e7")
    for op, arrays in TRAFFIC.items():
        if copy and f"{op}, 3e7" in ours:
            share = (arrays / ours[f"{op}, 3e7"]) / (2 / copy) * 100
            r.add(
                f"{op}, 3e7: of a copy's bandwidth", share, "%", target=80, higher=True
            )
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        r.add("geometric mean of the ratios", mean, "x", target=1.0)
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
