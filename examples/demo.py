# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shows what Holdfast does: trains through a daemon, then outlives the trainer.

A daemon is started; a client trains a convolutional network on Fashion-MNIST
over shared memory; the client is killed with SIGKILL; a new process attaches to
the session and evaluates the same weights to the same accuracy. Pictures go to
--output. Ends with status 0 only if the accuracy is at least 0.90 and equal.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.daemon import Daemon

TRAINER = Path(__file__).with_name("fashion_mnist.py")
SESSION = "demo"
WANTED_ACCURACY = 0.90


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="use only the first N images")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build/demo"),
        help="folder for the pictures and the weights (default: %(default)s)",
    )
    parser.add_argument(
        "--grpc", action="store_true", help="train over gRPC, not shared memory"
    )
    parser.add_argument(
        "--min-accuracy", type=float, default=WANTED_ACCURACY, help=argparse.SUPPRESS
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as scratch:
        with Daemon() as daemon:
            address = daemon.address("grpc" if args.grpc else "shm")
            say(f"holdfastd runs as process {daemon.pid} on {address}")
            return show(args, address, Path(scratch))


def show(args, address, scratch):
    say("training a convolutional network on Fashion-MNIST")
    options = ["--address", address, "--session", SESSION, "--seed", str(args.seed)]
    if args.limit:
        options += ["--limit", str(args.limit)]
    trained = scratch / "trained.json"
    trainer = start(
        *options,
        *("--epochs", str(args.epochs)),
        *("--save", args.output / "fashion_mnist.holdfast"),
        *("--report", trained),
        "--stay",
    )
    try:
        last_line = follow(trainer)
    finally:
        # What training programs fear most, and no goodbye to the daemon.
        trainer.kill()
        status = trainer.wait()
    if last_line is None:
        say(f"training ended early, with status {status}")
        return 1
    before = json.loads(trained.read_text())
    if status != -signal.SIGKILL:
        say(f"the client was to be killed, but ended with status {status}")
        return 1
    say(f"killed the training client (process {trainer.pid}) with SIGKILL")

    say(f"a new process attaches to session {SESSION!r} and evaluates its weights")
    attached = scratch / "attached.json"
    start_again = start(*options, "--attach", "--report", attached)
    follow(start_again)
    if start_again.wait() != 0:
        say("attaching failed")
        return 1
    after = json.loads(attached.read_text())
    draw(args, before, after)
    equal = after["accuracy"] == before["accuracy"]
    word = "equal" if equal else "DIFFERENT"
    say(
        f"accuracy before the kill {before['accuracy']:.4f}, "
        f"after it {after['accuracy']:.4f}: {word}"
    )
    print(last_line, flush=True)
    if before["accuracy"] < args.min_accuracy:
        print(f"accuracy is below {args.min_accuracy}", file=sys.stderr)
        return 1
    return 0 if equal else 1


def say(text):
    print(f"--- {text}", flush=True)


def start(*options):
    """Another process that runs the training example."""
    return subprocess.Popen(
        [sys.executable, "-u", TRAINER, *options], stdout=subprocess.PIPE, text=True
    )


def follow(process):
    """Shows what a process prints up to its result, which is returned."""
    for line in process.stdout:
        print(line, end="", flush=True)
        if line.startswith("accuracy="):
            return line.rstrip()
    return None


def draw(args, before, after):
    """Two pictures: how training went, and what the network says of images."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for name, picture in [
        ("training_curve.png", curve_figure(pyplot, before)),
        ("predictions.png", predictions_figure(pyplot, after)),
    ]:
        path = args.output / name
        picture.savefig(path, dpi=120, bbox_inches="tight")
        pyplot.close(picture)
        say(f"wrote {path}")


def curve_figure(pyplot, report):
    figure, left = pyplot.subplots(figsize=(8, 4.5))
    per_epoch = report["steps_per_epoch"]
    steps, losses = [], []
    for epoch, entry in enumerate(report["epochs"]):
        for step, loss in entry["curve"]:
            steps.append(epoch + step / per_epoch)
            losses.append(loss)
    left.plot(steps, losses, color="tab:blue", alpha=0.4, label="loss of a batch")
    ends = range(1, len(report["epochs"]) + 1)
    means = [entry["loss"] for entry in report["epochs"]]
    left.plot(ends, means, "o-", color="tab:blue", label="mean loss of an epoch")
    left.set_xlabel("epoch")
    left.set_ylabel("training loss")
    left.set_ylim(bottom=0)
    right = left.twinx()
    accuracies = [entry["accuracy"] for entry in report["epochs"]]
    right.plot(ends, accuracies, "s-", color="tab:orange", label="test accuracy")
    right.set_ylabel("test accuracy")
    lines = left.get_lines() + right.get_lines()
    left.legend(lines, [line.get_label() for line in lines], loc="center right")
    left.set_title(
        f"Fashion-MNIST over {report['transport']}: accuracy "
        f"{report['accuracy']:.4f} in {report['seconds']:.1f} s"
    )
    return figure


def predictions_figure(pyplot, report):
    import fashion_mnist

    predictions = report["predictions"]
    classes, sure = predictions["classes"], predictions["probabilities"]
    folder = fashion_mnist.DATA
    images = fashion_mnist.read_idx(folder / "t10k-images-idx3-ubyte.gz")
    labels = fashion_mnist.read_idx(folder / "t10k-labels-idx1-ubyte.gz")
    names = fashion_mnist.CLASSES
    figure, axes = pyplot.subplots(4, 6, figsize=(11, 8))
    for i, axis in enumerate(axes.flat):
        axis.imshow(images[i], cmap="gray_r")
        axis.set_xticks([])
        axis.set_yticks([])
        right = classes[i] == labels[i]
        text = f"{names[classes[i]]} {sure[i]:.0%}"
        if not right:
            text += f"\n(is {names[labels[i]]})"
        axis.set_title(text, fontsize=9, color="darkgreen" if right else "darkred")
    figure.suptitle("Test images, as the re-attached weights see them")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    sys.exit(main())
