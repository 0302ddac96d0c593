# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""DataLoader: batches per second, against PyTorch.

  augmented   a Python dataset: images that NumPy flips, crops and normalises
  tensors     a TensorDataset, shuffled

each with 0, 1 and 2 workers. Every batch is used: its sum is taken, and the last
one read.
"""

import json
import sys
import time

import numpy as np

import daemon
import peer
import report

BATCH = 64
WORKERS = (0, 1, 2)


class Augmented:
    """RGB images of 32x32, padded, cropped, flipped at random and normalised."""

    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
        self.labels = rng.integers(0, 10, count)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = np.pad(self.images[index], ((0, 0), (4, 4), (4, 4)))
        top, left = np.random.randint(0, 9, 2)
        image = image[:, top : top + 32, left : left + 32]
        if np.random.rand() < 0.5:
            image = image[:, :, ::-1]
        image = (image.astype(np.float32) / 255 - 0.5) / 0.25
        return np.ascontiguousarray(image), int(self.labels[index])


def batches_per_second(torch, dataset, workers):
    """One pass after the first batch, which starts the workers."""
    options = {"persistent_workers": True} if workers else {}
    loader = torch.utils.data.DataLoader(
        dataset, BATCH, shuffle=True, num_workers=workers, **options
    )

    def one_pass():
        total = torch.zeros(())
        for images, _ in loader:
            total += images.sum()
        return total.item()

    one_pass()
    start = time.perf_counter()
    total = one_pass()
    assert total == total, "the sum is not a number"
    return len(loader) / (time.perf_counter() - start)


def both(torch, args):
    torch.manual_seed(0)
    count = 2000 if args.quick else 10000
    tensors = torch.utils.data.TensorDataset(
        torch.rand(count, 3, 32, 32), torch.arange(count)
    )
    return {
        f"{name}, {workers} workers": batches_per_second(torch, dataset, workers)
        for name, dataset in (("augmented", Augmented(count)), ("tensors", tensors))
        for workers in WORKERS
    }


def main():
    p = report.parser(__doc__)
    p.add_argument("--peer", action="store_true", help="measure PyTorch here")
    args = p.parse_args()
    if args.peer:
        import torch
        import torch.utils.data

        torch.set_num_threads(peer.threads())
        print(json.dumps(both(torch, args)))
        return 0
    theirs = peer.measure("data.py", *(["--quick"] if args.quick else []))
    import holdfast
    import holdfast.utils.data

    r = report.Report(f"data: {peer.threads()} threads, PyTorch {peer.version()}")
    with daemon.running() as d:
        holdfast.connect("unix:" + d["socket"])
        for name, value in both(holdfast, args).items():
            r.add(
                name,
                value,
                "batches/s",
                theirs.get(name),
                target_ratio=1.0,
                higher=True,
            )
        holdfast.disconnect()
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
