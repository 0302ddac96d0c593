# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Ops, copies and training on the GPU, Holdfast's time beside PyTorch's. See `run`."""

import argparse
import functools
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/gpu"))
import bundle  # noqa: E402
import training  # noqa: E402
import transfers  # noqa: E402

# Input [N, C, H, W] and output channels, kernel, stride of ResNet-50's convolutions.
CONVOLUTIONS = [
    (64, 3, 224, 64, 7, 2),
    (64, 64, 56, 64, 1, 1),
    (64, 64, 56, 64, 3, 1),
    (64, 256, 56, 128, 1, 1),
    (64, 128, 28, 128, 3, 1),
    (64, 512, 28, 1024, 1, 2),
    (64, 256, 14, 256, 3, 1),
    (64, 512, 7, 512, 3, 1),
]


def programs():
    """(name, setup(module, device) -> step function, repeats, bytes or None)."""

    def chain(t, device):
        x = t.ones(10, device=device)

        def step():
            y = x
            for _ in range(1000):
                y = y * 1.0001
            return y

        return step

    yield "1000 tiny ops", chain, 5, None
    n = 1 << 28

    def add(t, device):
        x = t.ones(n, device=device)
        return lambda: x + x

    yield "add, 1 GiB each", add, 10, 3 * 4 * n

    def total(t, device):
        x = t.ones(n, device=device)
        return lambda: x.sum()

    yield "sum of 1 GiB", total, 10, 4 * n

    def matmul(dtype):
        def setup(t, device):
            x = t.ones(8192, 8192, device=device, dtype=getattr(t, dtype))
            return lambda: x @ x

        return setup

    yield "matmul 8192 bfloat16", matmul("bfloat16"), 10, None
    yield "matmul 8192 float32", matmul("float32"), 3, None

    def convolution(dtype, n, c, size, out, kernel, stride):
        def setup(t, device):
            options = {"device": device, "dtype": getattr(t, dtype)}
            x, w = t.ones(n, c, size, size, **options), t.ones(
                out, c, kernel, kernel, **options
            )
            return lambda: t.nn.functional.conv2d(x, w, None, stride, kernel // 2)

        return setup

    for dtype in ("float32", "bfloat16"):
        for shape in CONVOLUTIONS:
            n, c, size, out, kernel, stride = shape
            name = f"conv2d {dtype} [{n},{c},{size},{size}] -> {out}, {kernel}/{stride}"
            yield name, convolution(dtype, *shape), 10, None

    def softmax(t, device):
        x = t.ones(65536, 1024, device=device)
        return lambda: t.softmax(x, 1)

    yield "softmax [65536,1024]", softmax, 10, 2 * 4 * 65536 * 1024

    def layer_norm(t, device):
        x = t.ones(65536, 1024, device=device)
        return lambda: t.nn.functional.layer_norm(x, (1024,))

    yield "layer_norm [65536,1024]", layer_norm, 10, 2 * 4 * 65536 * 1024

    def attention(t, device, dtype, backward):
        options = {"device": device, "dtype": getattr(t, dtype)}
        q, k, v = (t.ones(8, 16, 1024, 64, **options) for _ in range(3))
        inputs = [x.requires_grad_(backward) for x in (q, k, v)]

        def step():
            F = t.nn.functional
            out = F.scaled_dot_product_attention(*inputs, is_causal=True)
            return t.autograd.grad(out, inputs, v.detach()) if backward else out

        return step

    for dtype in ("float32", "bfloat16"):
        for backward in (False, True):
            name = f"attention {dtype} [8,16,1024,64]" + " and gradient" * backward
            setup = functools.partial(attention, dtype=dtype, backward=backward)
            yield name, setup, 10, None

    def recurrent(t, device, kind, dtype, backward):
        layer = getattr(t.nn, kind)(512, 512, bidirectional=True)
        layer.to(device, getattr(t, dtype)).requires_grad_(backward)
        x = t.ones(100, 64, 512, device=device, dtype=getattr(t, dtype))
        inputs = [x.requires_grad_(backward), *layer.parameters()]
        grad = t.ones(100, 64, 1024, device=device, dtype=getattr(t, dtype))

        def step():
            out = layer(x)[0]
            return t.autograd.grad(out, inputs, grad) if backward else out

        return step

    for kind in ("LSTM", "GRU"):
        for dtype in ("float32", "float16"):
            for backward in (False, True):
                name = f"{kind} {dtype} [100,64,512]" + " and gradient" * backward
                setup = functools.partial(
                    recurrent, kind=kind, dtype=dtype, backward=backward
                )
                yield name, setup, 10, None

    def training(t, device):
        F = t.nn.functional
        layers = [t.nn.Linear(1024, 1024).to(device) for _ in range(8)]
        parameters = [p for layer in layers for p in layer.parameters()]
        optimizer = t.optim.Adam(parameters, lr=1e-3)
        x = t.ones(256, 1024, device=device)

        def step():
            y = x
            for layer in layers:
                y = F.relu(layer(y))
            loss = (y * y).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    yield "training step, MLP 8 x 1024", training, 20, None


def seconds(step, finish, repeats):
    """The median of five rounds, per step."""
    step()
    finish()
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        finish()
        rounds.append((time.perf_counter() - start) / repeats)
    return statistics.median(rounds)


def show(row):
    """A line for people."""
    name = row["program"]
    if "bytes" in row:
        return f"{name}: {row['bytes'] / 2**20:.2f} MiB"
    if "seconds" not in row:
        return f"{name}: failed, {row.get('seconds_error')}"
    text = f"{name}: {row['seconds'] * 1e3:.3f} ms"
    if "gb_per_s" in row:
        text += f", {row['gb_per_s']:.0f} GB/s"
    if "torch" not in row:
        return text + f"; PyTorch: {row.get('torch_error', 'not measured')}"
    ratio = row["torch"] / row["seconds"]
    text += f"; PyTorch {row['torch'] * 1e3:.3f} ms, {ratio:.2f} x as fast"
    if "torch_reserved" in row:
        ours, theirs = row["reserved"] / 2**20, row["torch_reserved"] / 2**20
        text += f"; {ours:.0f} MiB held, PyTorch {theirs:.0f}"
    return text


def rows(holdfast, torch, daemon, args):
    """All that is measured. Without PyTorch's side where `torch` is None."""
    device = "cuda"
    session = holdfast.connect(daemon.shm_address)
    step = None
    for name, setup, repeats, size in programs():
        if args.only not in name:
            continue
        row = {"program": name}
        step = setup(holdfast, device)
        row["seconds"] = seconds(step, session.synchronize, repeats)
        if torch is not None:
            row["torch"] = seconds(
                setup(torch, device), torch.cuda.synchronize, repeats
            )
            torch.cuda.empty_cache()
        if size:
            row["gb_per_s"] = size / row["seconds"] / 1e9
        yield row
    step = None  # and with it, its tensors
    holdfast.cuda.empty_cache()
    if args.only in "upload download start memory":
        yield from transfers.copies(holdfast, torch, device)
        yield transfers.start(daemon.shm_address, device, torch is not None)
        yield transfers.idle_users(holdfast, daemon.shm_address)
    yield from training.measure(
        daemon.shm_address, device, args.only, args.steps, torch is not None
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", help="what ./dev bundle --cuda made")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("-k", dest="only", default="", help="programs with this word")
    parser.add_argument("--steps", type=int, default=20, help="of training, per window")
    args = parser.parse_args()
    bundle.use_client(args.bundle)
    try:
        import torch
    except ImportError:
        raise SystemExit("benchmarks/gpu/run needs PyTorch to compare with") from None
    skipped = bundle.reason_to_skip(torch, "cuda")
    if skipped:
        bundle.report(args.json, skipped=skipped, results=[])
        print(f"benchmarks/gpu/run: skipped, {skipped}")
        return 0
    import holdfast

    results = []
    with bundle.start_daemon("cuda") as daemon:
        for row in rows(holdfast, torch, daemon, args):
            results.append(row)
            print(show(row), flush=True)
            # What was found is there, should the time run out.
            bundle.report(args.json, results=results)
    for line in training.summary(results):
        print(line)
    compared = [r for r in results if "torch" in r and "seconds" in r]
    slower = sum(r["torch"] < r["seconds"] for r in compared)
    failed = sum("seconds_error" in r for r in results)
    print(f"{len(compared)} programs, {slower} slower than PyTorch, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
