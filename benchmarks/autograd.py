# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and backward of small and large programs, against PyTorch.

The same code runs with Holdfast in the place of `torch` (`holdfast.run`) and with
PyTorch, each in a process of its own, in turns. Times are the least of several
windows of steps, each window ending when all of it has been executed.

`chain` also gives the price of a node of the graph: the part of the time that
grows with the number of recorded ops, forward and backward.
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


def resnet18(torch):
    from models import resnet

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
    print(json.dumps(seconds_per_step(torch, PROGRAMS[name], windows)))


def measure(name, windows, socket=None):
    """Seconds per step in a process of its own; None if it failed."""
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    side = ["--side", "holdfast" if socket else "torch"]
    if socket:
        env["HOLDFAST_ADDRESS"] = "unix:" + socket
    command = [sys.executable, __file__, *side, "--only", name]
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
    ours, theirs = {}, {}
    with daemon.running() as d:
        for name in names:
            turns = range(1 if args.quick else TURNS)
            pairs = [
                (measure(name, args.windows, d["socket"]), measure(name, args.windows))
                for _ in turns
            ]
            ours[name], theirs[name] = (least(side) for side in zip(*pairs))
            other = theirs[name]
            r.add(
                name,
                ours[name] * 1e6,
                "us",
                other and other * 1e6,
                target_ratio=1.0,
            )
    r.add_geometric_mean(target=0.9)
    short, long = list(PROGRAMS)[:2]
    if short in ours and long in ours:
        node = (ours[long] - ours[short]) / 990 * 1e6
        peers = [theirs[long], theirs[short]]
        other = None if None in peers else (peers[0] - peers[1]) / 990 * 1e6
        r.add("per recorded op, forward and backward", node, "us", other, target=1.0)
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
