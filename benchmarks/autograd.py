# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward of small and large programs, against PyTorch.

The same code runs with Holdfast in the place of `torch` (`holdfast.run`) and with
PyTorch, each in a process of its own, in turns. Times are the least of several
windows of steps, each window ending when all of it has been executed.

The price of a node of the graph is what it adds to an op that is recorded:
a chain of ops forward, over one that is not recorded. What such an op costs
altogether, forward and backward, stands below it.
"""

import json
import os
import subprocess
import sys
import time

import daemon
import peer
import report

WINDOW_S = 0.25  # of one measurement, so that the clock and the wait do not count
TURNS = 3  # each side in turn, so that a busy moment does not hit one of them alone


def classifier(torch, model, *inputs):
    """A step of training: loss against constant classes, SGD."""
    labels = torch.arange(inputs[0].shape[0]) % 10
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss_of(model(*inputs), labels).backward()
        optimizer.step()

    return step


def chain(nodes):
    def make(torch):
        x = torch.ones(10, requires_grad=True)

        def step():
            y = x
            for _ in range(nodes):
                y = y * 1.01
            y.sum().backward()
            x.grad = None

        return step

    return make


def forward(recorded):
    def make(torch):
        x = torch.ones(10, requires_grad=recorded)

        def step():
            y = x
            for _ in range(1000):
                y = y * 1.01

        return step

    return make


def mlp(batch):
    def make(torch):
        nn = torch.nn
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
        return classifier(torch, model, torch.randn(batch, 784))

    return make


def lstm_cell(torch):
    nn = torch.nn

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(64, 128)
            self.out = nn.Linear(128, 10)

        def forward(self, x):
            state = None
            for part in x.unbind(1):
                state = self.cell(part, state)
            return self.out(state[0])

    return classifier(torch, Last(), torch.randn(16, 100, 64))


def parts_of_sequence(torch):
    """Written with x[t] instead of unbind: each step takes its part of x."""
    x = torch.randn(200, 32, 64, requires_grad=True)

    def step():
        x.grad = None
        state = torch.zeros(32, 64)
        for t in range(200):
            state = torch.tanh(state + x[t])
        state.sum().backward()

    return step


def glu_and_loss(torch):
    x = torch.randn(10000, 200, requires_grad=True)
    target = torch.randn(10000, 100)
    f = torch.nn.functional

    def step():
        x.grad = None
        f.smooth_l1_loss(f.glu(x), target).backward()

    return step


def resnet18(torch):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "models"))
    import resnet

    return classifier(torch, resnet.resnet18(10), torch.randn(4, 3, 96, 96))


def transformer(torch):
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 4)
            self.out = nn.Linear(256, 10)

        def forward(self, x):
            return self.out(self.encoder(x).mean(1))

    return classifier(torch, Encoder(), torch.randn(8, 64, 256))


PROGRAMS = {
    "10 x mul + sum + backward": chain(10),
    "1000 x mul + sum + backward": chain(1000),
    "2-layer MLP, batch 1": mlp(1),
    "2-layer MLP, batch 32": mlp(32),
    "2-layer MLP, batch 1024": mlp(1024),
    "LSTM cell, 100 steps": lstm_cell,
    "ResNet-18, 4x3x96x96": resnet18,
    "transformer, 4 layers": transformer,
}

# Beside those of the mean.
BESIDE = {
    "tanh(state + x[t]), 200 steps": parts_of_sequence,
    "glu + smooth_l1_loss": glu_and_loss,
}

# What recording adds: the difference of these two, over 1000.
RECORDED, PLAIN = "1000 x mul, recorded", "1000 x mul, not recorded"
PARTS = {RECORDED: forward(True), PLAIN: forward(False)}
ALL = {**PROGRAMS, **BESIDE, **PARTS}


def seconds_per_step(torch, make, windows):
    torch.manual_seed(0)
    step = make(torch)
    synchronize = getattr(torch, "synchronize", lambda: None)

    def window(count):
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        synchronize()
        return time.perf_counter() - start

    window(2)
    count = 1
    while (spent := window(count)) < WINDOW_S:
        count = max(count + 1, int(count * min(10, 1.2 * WINDOW_S / spent)))
    return min(spent, *(window(count) for _ in range(windows))) / count


def measure_here(name, ours, windows):
    """The figure of one program in this process, printed for the one above."""
    if ours:
        import holdfast.run

        holdfast.run.stand_in_for_torch()
    import torch

    if not ours:
        torch.set_num_threads(peer.threads())
    print(json.dumps(seconds_per_step(torch, ALL[name], windows)))


def measure(name, windows, socket=None):
    """Seconds per step in a process of its own; None if it failed."""
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    side = ["--side", "holdfast" if socket else "torch"]
    if socket:
        env["HOLDFAST_ADDRESS"] = "unix:" + socket
    python = sys.executable if socket else peer.python()
    command = [python, __file__, *side, "--only", name]
    out = subprocess.run(
        [*command, "--windows", str(windows)],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(out.stdout.splitlines()[-1]) if out.returncode == 0 else None


def least(values):
    return min((v for v in values if v is not None), default=None)


def main():
    p = report.parser(__doc__)
    p.add_argument("--only", help="one program, by its name")
    p.add_argument("--side", choices=("holdfast", "torch"), help="for itself")
    p.add_argument("--windows", type=int, default=4, help="least of how many")
    args = p.parse_args()
    if args.side:
        return measure_here(args.only, args.side == "holdfast", args.windows)
    names = [args.only] if args.only else list(PROGRAMS)
    r = report.Report(f"autograd: {peer.threads()} threads, PyTorch {peer.version()}")
    turns = 1 if args.quick else TURNS
    with daemon.running() as d:

        def both(name):
            """Our microseconds per step and PyTorch's, which may be None."""
            pairs = [
                (measure(name, args.windows, d["socket"]), measure(name, args.windows))
                for _ in range(turns)
            ]
            return [s and s * 1e6 for s in (least(side) for side in zip(*pairs))]

        results = {name: both(name) for name in names}
        for name, (own, other) in results.items():
            r.add(name, own, "us", other, target_ratio=1.0)
        r.add_geometric_mean(target=0.9)
        if not args.only:
            for name in BESIDE:
                own, other = both(name)
                r.add(name, own, "us", other, target_ratio=1.0)
            add_nodes(r, results, both)
    return r.finish(args)


def add_nodes(r, results, both):
    """The price of a node, and of an op with its node, forward and backward."""
    own, other = per_op(both(RECORDED), both(PLAIN), 1000)
    r.add("a node of the graph", own, "us", other, target=1.0)
    short, long = (results[name] for name in list(PROGRAMS)[:2])
    own, other = per_op(long, short, 990)
    r.add("an op, its node and its backward", own, "us", other)


def per_op(more, less, ops):
    return [None if None in (a, b) else (a - b) / ops for a, b in zip(more, less)]


if __name__ == "__main__":
    sys.exit(main())
