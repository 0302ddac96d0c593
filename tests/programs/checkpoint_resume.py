# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Training that stops, is saved and goes on from the file as if it had not stopped."""

import io
import os
import shutil
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def seeded_model():
    model = nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
    )
    rng = np.random.RandomState(0)
    for name, p in sorted(model.named_parameters()):
        if name != "1.weight":
            p.data.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, p.shape)))
    return model


class AverageMeter(object):
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    def __str__(self):
        return ("{} {" + self.fmt + "}").format(self.name, self.sum / self.count)


def save_checkpoint(state, is_best, folder):
    filename = os.path.join(folder, "checkpoint.pth.tar")
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(folder, "model_best.pth.tar"))


def run(folder, resume, stop, epochs=4):
    model = seeded_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(
        optimizer, milestones=[1, 3], gamma=0.5
    )
    start_epoch, best_acc1 = 0, 0
    if resume:
        checkpoint = torch.load(
            os.path.join(folder, "checkpoint.pth.tar"), map_location=torch.device("cpu")
        )
        start_epoch, best_acc1 = checkpoint["epoch"], checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        print("=> loaded checkpoint (epoch {})".format(checkpoint["epoch"]))
    for epoch in range(start_epoch, epochs):
        rng = np.random.RandomState(epoch)
        losses, top1 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f")
        model.train()
        for _ in range(4):
            x = torch.from_numpy(rng.randn(16, 6).astype(np.float32))
            y = (x[:, :3].argmax(1) + 1) % 3
            output = model(x)
            loss = F.cross_entropy(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), x.size(0))
            top1.update((output.argmax(1) == y).float().mean().item() * 100, x.size(0))
        scheduler.step()
        print("Epoch: [{}]".format(epoch), str(losses), str(top1))
        acc1 = top1.sum / top1.count
        state = {
            "epoch": epoch + 1,
            "state_dict": model.state_dict(),
            "best_acc1": max(acc1, best_acc1),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        save_checkpoint(state, acc1 > best_acc1, folder)
        best_acc1 = max(acc1, best_acc1)
        if epoch + 1 == stop:
            return model
    return model


with tempfile.TemporaryDirectory() as folder:
    whole = run(folder, resume=False, stop=None)
    run(folder, resume=False, stop=2)
    resumed = run(folder, resume=True, stop=None)
    same = [
        torch.equal(a, b)
        for a, b in zip(whole.state_dict().values(), resumed.state_dict().values())
    ]
    print("the same weights:", all(same), len(same))
    print(sorted(os.listdir(folder)))
buffer = io.BytesIO()
torch.save({"nested": [torch.arange(3), (torch.tensor(1.5), "text")]}, buffer)
buffer.seek(0)
print(torch.load(buffer))
