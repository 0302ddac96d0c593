# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own device "holdfast" beside its device "cpu", in one run.

  submit        a + b, 10 floats: the Python call alone, without and with a gradient
  backward      10 x mul + sum + backward, submitted and executed
  MLP           a training step: 64 x 256 -> 512 -> 512 -> 10, cross entropy, SGD
  transformer   a training step: 4 layers of width 128, batch 8 x 32, SGD

Both over shared memory and over gRPC on loopback, with the PyTorch of
`./dev build --torch`, or of $HOLDFAST_BENCH_PYTHON.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import daemon
import peer
import report

ROOT = Path(__file__).resolve().parents[1]

# What is measured: the key, the line, its unit, its bound, its bound beside "cpu".
FIGURES = (
    ("submit", "a + b, no gradient", "us", 2.5, None),
    ("submit_grad", "a + b, gradient", "us", 4, None),
    ("backward", "10 x mul + sum + backward", "us", None, 1.0),
    ("mlp", "MLP, a step", "ms", None, 1.0),
    ("transformer", "transformer, a step", "ms", None, 1.0),
)


def submit_us(torch, device, grad, n):
    a = torch.ones(10, device=device, requires_grad=grad)
    b = torch.ones(10, device=device)

    def run():
        torch.accelerator.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            c = a + b  # noqa: F841
        return (time.perf_counter() - start) / n * 1e6

    return min(run() for _ in range(15))


def backward_us(torch, device, n):
    x = torch.ones(10, device=device, requires_grad=True)

    def run():
        torch.accelerator.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            y = x
            for _ in range(10):
                y = y * 1.01
            y.sum().backward()
            x.grad = None
        torch.accelerator.synchronize()
        return (time.perf_counter() - start) / n * 1e6

    return min(run() for _ in range(5))


def mlp(torch):
    layers = [torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)]
    model = torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(512, 10))
    return model, torch.randn(64, 256), torch.randint(0, 10, (64,))


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(
        128, 4, 256, dropout=0.0, activation="gelu", batch_first=True
    )
    model = torch.nn.Sequential(
        torch.nn.Embedding(1000, 128),
        torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
        torch.nn.Linear(128, 1000),
        torch.nn.Flatten(0, 1),
    )
    tokens = torch.randint(0, 1000, (8, 33))
    return model, tokens[:, :-1], tokens[:, 1:].flatten()


def step_ms(torch, device, build, n):
    """Median of a step with the loss read, as a program that prints it has it."""
    torch.manual_seed(0)
    model, x, target = (part.to(device) for part in build(torch))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(n + 3):
        start = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[3:])


def measure(device, quick):
    import torch

    torch.set_num_threads(peer.threads())
    n = 500 if quick else 2000
    steps = 10 if quick else 50
    return {
        "submit": submit_us(torch, device, False, n),
        "submit_grad": submit_us(torch, device, True, n),
        "backward": backward_us(torch, device, n // 20),
        "mlp": step_ms(torch, device, mlp, steps),
        "transformer": step_ms(torch, device, transformer, steps),
    }


def measured(device, address, quick):
    """The figures of a process of its own: two thread pools would disturb."""
    command = [peer.python(), os.path.abspath(__file__), "--device", device]
    command += ["--address", address, *(["--quick"] if quick else [])]
    packages = [str(ROOT / "torch_client"), os.environ.get("PYTHONPATH", "")]
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, packages))
    out = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(out.stdout.splitlines()[-1])


def main():
    p = report.parser(__doc__)
    p.add_argument("--device", help="measure here: cpu or holdfast")
    p.add_argument("--address", help="of the daemon, with --device")
    args = p.parse_args()
    if args.device:
        import holdfast_torch

        holdfast_torch.connect(args.address)
        print(json.dumps(measure(args.device, args.quick)))
        return 0
    python = ROOT / ".venv-torch/bin/python"
    if "HOLDFAST_BENCH_PYTHON" not in os.environ:
        if not python.exists():
            sys.exit("torch_device: run ./dev build --torch first")
        os.environ["HOLDFAST_BENCH_PYTHON"] = str(python)
    r = report.Report(
        f"torch_device: {peer.threads()} threads, PyTorch {peer.version()}"
    )
    with daemon.running() as d:
        cpu = measured("cpu", "unix:" + d["socket"], args.quick)
        for transport, address in (
            ("shared memory", "unix:" + d["socket"]),
            ("gRPC", d["listen"]),
        ):
            ours = measured("holdfast", address, args.quick)
            for key, line, unit, target, ratio in FIGURES:
                name = f"{line}, {transport}"
                shm = transport == "shared memory"
                bounds = {"target": target, "target_ratio": ratio} if shm else {}
                r.add(name, ours[key], unit, cpu[key], **bounds)
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
