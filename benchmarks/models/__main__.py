# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Training six models, against PyTorch: AlexNet, VGG-19, ResNet-50, MobileNetV2,
GNMTv2 and NCF, on synthetic data.

The same file (train.py, ordinary PyTorch code) runs under PyTorch and under
`holdfast run`, in turns. Each model has: five losses from the same weights, the
time of a step over shared memory, over gRPC and over gRPC through a network with
a round trip of 50 ms (the loss read every 10 steps), and the peak memory of a
step.
"""

import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))

import daemon  # noqa: E402
import delay  # noqa: E402
import peer  # noqa: E402
import report  # noqa: E402

MODELS = ("alexnet", "vgg", "resnet", "mobilenet", "gnmt", "ncf")
ROUND_TRIP_S = 0.05
# Time / PyTorch's, for throughputs of at least 1, 0.95 and 0.9 of PyTorch's.
TARGETS = {"shared memory": 1.0, "gRPC": 1 / 0.95, "gRPC, 50 ms away": 1 / 0.9}


FAILED = []


def run(address, *args):
    """The result of train.py: under PyTorch if `address` is None. None if it
    failed, which FAILED then tells."""
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    command = [peer.python() if address is None else sys.executable]
    if address is not None:
        command += ["-m", "holdfast.run"]
        env["HOLDFAST_ADDRESS"] = address
    out = subprocess.run(
        [*command, os.path.join(FOLDER, "train.py"), *args],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = out.stdout.splitlines()
    if out.returncode != 0:
        where = "PyTorch" if address is None else "Holdfast at " + address
        FAILED.append(f"train.py {' '.join(args)} under {where}: {out.returncode}")
        return None
    return json.loads(lines[-1]) if lines else {}


def get(result, key):
    return None if result is None else result.get(key)


def compare_losses(r, model, address, weights):
    args = (model, "--losses", "--steps", "5", "--weights", weights)
    ours, theirs = (get(run(a, *args), "losses") for a in (address, None))
    if ours is None or theirs is None:
        return
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    r.add(f"{model}: losses differ by", worst, "", target=1e-4)


def compare_times(r, args, model, addresses):
    """Each side in turn, so that a busy moment does not hit one of them alone."""
    steps = ("--steps", "3" if args.quick else "10", "--windows", "1")
    best = {}
    for _ in range(1 if args.quick else args.turns):
        for side, address in [(None, None), *addresses.items()]:
            seconds = get(run(address, model, *steps), "seconds")
            if seconds is not None:
                best[side] = min(seconds, best.get(side, seconds))
    other = best.pop(None, None)
    for side, seconds in best.items():
        r.add(
            f"{model}: step, {side}",
            seconds * 1e3,
            "ms",
            other and other * 1e3,
            target_ratio=TARGETS[side],
        )


def compare_memory(r, model, address):
    ours, theirs = (get(run(a, model, "--memory"), "peak") for a in (address, None))
    if ours is not None:
        mib = 1 << 20
        other = theirs and theirs / mib
        r.add(f"{model}: peak memory", ours / mib, "MiB", other, target_ratio=1.0)


def main():
    p = report.parser(__doc__)
    p.add_argument("--only", choices=MODELS, help="one model")
    p.add_argument("--turns", type=int, default=2, help="of each side")
    args = p.parse_args()
    names = [args.only] if args.only else MODELS
    r = report.Report(f"models: {peer.threads()} threads, PyTorch {peer.version()}")
    with tempfile.TemporaryDirectory() as folder, daemon.running() as d:
        with delay.proxy(d["listen"], ROUND_TRIP_S) as far:
            local = "unix:" + d["socket"]
            sides = zip(TARGETS, (local, d["listen"], far))
            addresses = dict(sides)
            for model in names:
                weights = os.path.join(folder, model + ".pt")
                if run(None, model, "--save", weights) is not None:
                    compare_losses(r, model, local, weights)
                compare_times(r, args, model, addresses)
                compare_memory(r, model, local)
                if os.path.exists(weights):
                    os.remove(weights)
    r.finish(args)
    for failure in FAILED:
        print("failed:", failure, file=sys.stderr)
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())
