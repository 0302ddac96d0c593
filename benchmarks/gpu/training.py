# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Training steps of the six models of benchmarks/models on the GPU, Holdfast's time
beside PyTorch's: in float32, in bfloat16 under autocast, and with small batches, where
launches are what takes the time. The file that runs (train.py) is ordinary PyTorch
code; each side has a process of its own, in turns. See `run`."""

import json
import math
import os
import pathlib
import subprocess
import sys

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
# Samples in a step: enough to keep a GPU busy, and few.
BATCHES = {
    "alexnet": (256, 4),
    "vgg": (64, 2),
    "resnet": (128, 2),
    "mobilenet": (128, 2),
    "gnmt": (128, 4),
    "ncf": (65536, 256),
}
WAYS = {
    "float32": (0, ()),
    "bfloat16": (0, ("--autocast", "bfloat16")),
    "small batch": (1, ()),
}
TURNS = 2


def train(address, device, *arguments):
    """What train.py prints: under PyTorch if `address` is None."""
    command = [sys.executable]
    env = dict(os.environ)
    if address is not None:
        command += ["-m", "holdfast.run"]
        env["HOLDFAST_ADDRESS"] = address
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
    out = subprocess.run(
        [*command, str(MODELS / "train.py"), *arguments, "--device", device],
        env=env,
        capture_output=True,
        text=True,
    )
    if out.returncode != 0:
        last = out.stderr.strip().splitlines()[-1:]
        return {"error": last[0] if last else f"exit status {out.returncode}"}
    return json.loads(out.stdout.splitlines()[-1])


def measure(address, device="cuda", only="", steps=20, peer=True):
    """Yields a row per model and way: seconds of a step, ours and PyTorch's, the
    least of the turns, or the error of a side; and the most bytes of tensors and of
    what was held for them: what is held beyond is fragments and rounding."""
    for model, batches in BATCHES.items():
        for way, (size, flags) in WAYS.items():
            name = f"training step, {model}, {way}"
            if only not in name:
                continue
            arguments = [model, "--steps", str(steps), "--batch", str(batches[size])]
            row = {"program": name, "batch": batches[size]}
            sides = {"seconds": address, **({"torch": None} if peer else {})}
            for _ in range(TURNS):
                for key, side in sides.items():
                    got = train(side, device, *arguments, *flags)
                    if "error" in got:
                        row[f"{key}_error"] = got["error"]
                    else:
                        row[key] = min(got["seconds"], row.get(key, math.inf))
                        of = "" if key == "seconds" else f"{key}_"
                        row[f"{of}allocated"] = got["allocated"]
                        row[f"{of}reserved"] = got["reserved"]
            yield row


def summary(rows):
    """Geometric means of PyTorch's time over ours, a line per way."""
    for way in WAYS:
        ratios = [
            row["torch"] / row["seconds"]
            for row in rows
            if row["program"].endswith(way) and {"torch", "seconds"} <= row.keys()
        ]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            yield (
                f"training, {way}: {mean:.2f} x as fast as PyTorch (geometric mean of "
                f"{len(ratios)}), {min(ratios):.2f} at the least"
            )
    yield from memory_summary(rows)


def memory_summary(rows):
    """The same of memory, a line for peaks of tensors and one for what was held."""
    for what in ("allocated", "reserved"):
        ratios = [
            row[what] / row[f"torch_{what}"]
            for row in rows
            if row.get(what) and row.get(f"torch_{what}")
        ]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            yield (
                f"training, peak of memory {what}: {mean:.2f} x PyTorch's (geometric "
                f"mean of {len(ratios)}), {max(ratios):.2f} at the most"
            )
