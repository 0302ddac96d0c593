# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Trains a small convolutional network on Fashion-MNIST through Holdfast.

Apart from `connect` and `keep`, this is a PyTorch program: the tensors live in the
daemon, the control flow here. The data set is Debian's dataset-fashion-mnist.
"""

import argparse
import gzip
import json
import signal
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

import holdfast as torch
import holdfast.nn.functional as F
from holdfast import nn, optim
from holdfast.utils.data import DataLoader, TensorDataset

DATA = Path("/usr/share/datasets/fashion-mnist")
CLASSES = "T-shirt Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Boot".split()
# Reading the loss waits for the device; in between, the loop runs ahead of it.
READ_EVERY = 20


def read_idx(path):
    """An array from a gzipped file in MNIST's format."""
    try:
        with gzip.open(path) as file:
            content = file.read()
    except FileNotFoundError:
        raise SystemExit(
            f"{path} is missing: apt-get install dataset-fashion-mnist, or --data DIR"
        )
    dims = content[3]
    shape = np.frombuffer(content, ">i4", dims, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dims).reshape(shape)


def load_data(folder, part, limit=None):
    """A TensorDataset of images [N, 1, 28, 28] in [0, 1] and int64 labels [N]."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:limit]
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")[:limit]
    images = torch.tensor(images).unsqueeze(1).float() / 255
    return TensorDataset(images, torch.tensor(labels).long())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.25),
            nn.Linear(32 * 7 * 7, 128),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Linear(128, 10),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def train_epoch(model, loader, criterion, optimizer, scheduler, title):
    """One pass; returns the mean loss and what was seen of it on the way."""
    model.train()
    total = torch.zeros(())
    seen, curve = 0, []
    bar = tqdm(loader, desc=title, unit="batch", mininterval=1.0)
    for step, (images, labels) in enumerate(bar, start=1):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.detach() * len(labels)
        seen += len(labels)
        if step % READ_EVERY == 0:
            curve.append((step, loss.item()))
            bar.set_postfix(loss=f"{curve[-1][1]:.3f}")
    return total.item() / seen, curve


def evaluate(model, dataset):
    """Accuracy on a dataset, in [0, 1]."""
    model.eval()
    correct = torch.zeros((), dtype=torch.int64)
    with torch.no_grad():
        for images, labels in DataLoader(dataset, batch_size=1000):
            correct += (model(images).argmax(1) == labels).sum()
    return correct.item() / len(dataset)


def predict(model, dataset, count):
    """Classes and their probabilities for the first `count` images."""
    model.eval()
    with torch.no_grad():
        scores = model(dataset.tensors[0][:count])
        classes = scores.argmax(1)
        sure = F.softmax(scores, dim=1).max(1).values
    return {"classes": classes.tolist(), "probabilities": sure.tolist()}


def train(args):
    train_set = load_data(args.data, "train", args.limit)
    test_set = load_data(args.data, "t10k", args.limit)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    scheduler = optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=args.lr,
        epochs=args.epochs,
        steps_per_epoch=len(loader),
        cycle_momentum=False,
    )
    history = []
    start = time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        title = f"epoch {epoch}/{args.epochs}"
        loss, curve = train_epoch(model, loader, criterion, optimizer, scheduler, title)
        accuracy = evaluate(model, test_set)
        print(f"{title}: loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)
        history.append({"loss": loss, "accuracy": accuracy, "curve": curve})
    seconds = time.perf_counter() - start
    if args.save:
        torch.save(model.state_dict(), args.save)
    if args.session:
        # Whoever attaches to the session later finds the weights under a name.
        torch.keep("model", model.state_dict())
        torch.synchronize()  # before --stay is killed
    return {
        "accuracy": history[-1]["accuracy"],
        "seconds": seconds,
        "epochs": history,
        "steps_per_epoch": len(loader),
    }


def evaluate_kept(args):
    """Evaluates the weights that another process left in the session."""
    start = time.perf_counter()
    model = Net()
    model.load_state_dict(torch.kept("model"))
    test_set = load_data(args.data, "t10k", args.limit)
    accuracy = evaluate(model, test_set)
    return {
        "accuracy": accuracy,
        "seconds": time.perf_counter() - start,
        "predictions": predict(model, test_set, 24),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=3e-3, help="highest rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--address", help="host:port or unix:PATH of a daemon")
    parser.add_argument("--session", help="name of the session, to attach to later")
    parser.add_argument("--limit", type=int, help="use only the first N images")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    parser.add_argument("--save", type=Path, help="write the weights to this file")
    parser.add_argument("--report", type=Path, help="write results as JSON")
    parser.add_argument(
        "--attach",
        action="store_true",
        help="do not train: evaluate the weights kept in --session",
    )
    parser.add_argument(
        "--stay", action="store_true", help="keep the session open until killed"
    )
    args = parser.parse_args()
    if args.attach and not args.session:
        parser.error("--attach needs --session")

    session = torch.connect(args.address, session=args.session, attach=args.attach)
    torch.manual_seed(args.seed)
    report = evaluate_kept(args) if args.attach else train(args)
    report["transport"] = session.transport
    if args.report:
        args.report.write_text(json.dumps(report))
    print(
        f"accuracy={report['accuracy']:.4f} seconds={report['seconds']:.1f} "
        f"transport={session.transport}",
        flush=True,
    )
    if args.stay:
        signal.pause()


if __name__ == "__main__":
    main()
