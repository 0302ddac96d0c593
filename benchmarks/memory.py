# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of one training step, against PyTorch.

The same code runs with either module in the place of `torch`. After a step that
makes the optimizer's state, one more is measured: forward, loss, backward, Adam.
The figure is the most that tensors took at any moment of it, parameters, state
and batch included: the peak counter of the daemon's allocator here (its blocks
are rounded to 512 bytes), the sum of the profiler's allocation events there. No
model needs more than a few seconds.
"""

import json
import sys

import daemon
import peer
import report

MIB = 1 << 20


def mlp(torch):
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )
    return model, torch.randn(512, 784)


def convolutions(torch):
    nn = torch.nn
    layers, channels = [], 3
    for width in (32, 64, 128):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(*layers), torch.randn(64, 3, 32, 32)


def residual(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.body(x) + x)

    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        *(Block(64) for _ in range(4)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return model, torch.randn(32, 3, 32, 32)


def lstm(torch):
    nn = torch.nn

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.LSTM(128, 256, num_layers=2, batch_first=True)
            self.out = nn.Linear(256, 10)

        def forward(self, x):
            return self.out(self.layers(x)[0][:, -1])

    return Last(), torch.randn(32, 64, 128)


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

    return Encoder(), torch.randn(8, 128, 256)


MODELS = {
    "MLP, batch 512": mlp,
    "convolutions, batch 64": convolutions,
    "residual blocks, batch 32": residual,
    "LSTM, batch 32": lstm,
    "transformer, batch 8": transformer,
}


def prepare(torch, make):
    """A step to run, and the tensors that live between steps."""
    torch.manual_seed(0)
    model, x = make(torch)
    y = torch.arange(x.shape[0]) % 10
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), y).backward()
        optimizer.step()

    step()
    optimizer.zero_grad(set_to_none=True)
    lasting = [x, y, *model.parameters(), *model.buffers()]
    for state in optimizer.state.values():
        lasting += [v for v in state.values() if isinstance(v, torch.Tensor)]
    return step, lasting


def torch_peak(torch, make):
    step, lasting = prepare(torch, make)
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        step()
    # Bytes of each allocation, negative when freed, in order.
    size = peak = 0
    for event in profile.kineto_results.events():
        if event.name() == "[memory]":
            size += event.nbytes()
            peak = max(peak, size)
    return sum(t.numel() * t.element_size() for t in lasting) + peak


def holdfast_peak(holdfast, make):
    holdfast.synchronize()
    before = holdfast.memory_allocated()
    step, _ = prepare(holdfast, make)
    holdfast.reset_peak_memory_stats()
    step()
    return holdfast.max_memory_allocated() - before


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", action="store_true", help="measure PyTorch; for itself")
    args = p.parse_args()
    if args.peer:
        import torch

        torch.set_num_threads(peer.threads())
        figures = {name: torch_peak(torch, make) for name, make in MODELS.items()}
        print(json.dumps(figures))
        return 0
    theirs = peer.measure("memory.py")
    import holdfast

    r = report.Report(f"memory: {peer.threads()} threads, PyTorch {peer.version()}")
    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        for name, make in MODELS.items():
            ours = holdfast_peak(holdfast, make) / MIB
            other = theirs.get(name)
            r.add(name, ours, "MiB", other and other / MIB, target_ratio=1.0)
        holdfast.disconnect()
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
