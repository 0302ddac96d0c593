# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Ops on the GPU, Holdfast's time beside PyTorch's. See `run`."""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/gpu"))
import bundle  # noqa: E402


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

    def softmax(t, device):
        x = t.ones(65536, 1024, device=device)
        return lambda: t.softmax(x, 1)

    yield "softmax [65536,1024]", softmax, 10, 2 * 4 * 65536 * 1024

    def layer_norm(t, device):
        x = t.ones(65536, 1024, device=device)
        return lambda: t.nn.functional.layer_norm(x, (1024,))

    yield "layer_norm [65536,1024]", layer_norm, 10, 2 * 4 * 65536 * 1024

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", help="what ./dev bundle --cuda made")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("-k", dest="only", default="", help="programs with this word")
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
        session = holdfast.connect(daemon.shm_address)
        for name, setup, repeats, size in programs():
            if args.only not in name:
                continue
            ours = seconds(setup(holdfast, "cuda"), session.synchronize, repeats)
            theirs = seconds(setup(torch, "cuda"), torch.cuda.synchronize, repeats)
            torch.cuda.empty_cache()
            row = {"program": name, "seconds": ours, "torch": theirs}
            if size:
                row["gb_per_s"] = size / ours / 1e9
            results.append(row)
            print(
                f"{name}: {ours * 1e3:.3f} ms, PyTorch {theirs * 1e3:.3f} ms, "
                f"{theirs / ours:.2f} x as fast",
                flush=True,
            )
    bundle.report(args.json, results=results)
    slower = sum(r["torch"] < r["seconds"] for r in results)
    print(f"{len(results)} programs, {slower} slower than PyTorch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
