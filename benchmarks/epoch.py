# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""One epoch of the demo's network on Fashion-MNIST, against PyTorch.

The same code runs with either module in the place of `torch`: 60,000 images in
batches of 64 through two convolutions, pooling, two linear layers and dropout,
with SGD and momentum.

  loader   batches from DataLoader(TensorDataset(...), shuffle=True)
  slices   batches sliced from one tensor: the network alone
"""

import gzip
import json
import sys
import time

import numpy as np

import daemon
import peer
import report

FOLDER = "/usr/share/datasets/fashion-mnist"
BATCH = 64


def read_images(limit):
    with gzip.open(f"{FOLDER}/train-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16)
    with gzip.open(f"{FOLDER}/train-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)
    images = images.reshape(-1, 1, 28, 28)[:limit].astype(np.float32) / 255
    return images, labels[:limit].astype(np.int64)


def network(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def epoch_seconds(torch, images, labels, loader, synchronize):
    torch.manual_seed(0)
    model = network(torch)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    data = torch.utils.data.TensorDataset(x, y)
    batches = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True)

    def slices():
        for i in range(0, len(images), BATCH):
            yield x[i : i + BATCH], y[i : i + BATCH]

    def run(source, steps):
        loss = None
        for i, (inputs, target) in enumerate(source):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), target)
            loss.backward()
            optimizer.step()
            if i + 1 == steps:
                break
        return loss.item()

    run(slices(), 20)  # warm up
    synchronize()
    start = time.perf_counter()
    loss = run(batches if loader else slices(), None)
    assert loss == loss, "the loss is not a number"
    return time.perf_counter() - start


def both(torch, args, synchronize):
    images, labels = read_images(6000 if args.quick else 60000)
    return {
        kind: epoch_seconds(torch, images, labels, kind == "loader", synchronize)
        for kind in ("slices", "loader")
    }


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", action="store_true", help="measure PyTorch here")
    args = p.parse_args()
    if args.peer:
        import torch
        import torch.utils.data

        torch.set_num_threads(peer.threads())
        print(json.dumps(both(torch, args, lambda: None)))
        return 0
    theirs = peer.measure("epoch.py", *(["--quick"] if args.quick else []))
    import holdfast
    import holdfast.utils.data

    r = report.Report(f"epoch: {peer.threads()} threads, PyTorch {peer.version()}")
    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        ours = both(holdfast, args, holdfast.synchronize)
        for kind in ("loader", "slices"):
            r.add(
                f"one epoch, {kind}",
                ours[kind],
                "s",
                theirs.get(kind),
                target_ratio=1.0,
            )
        holdfast.disconnect()
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
