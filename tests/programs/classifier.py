# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small classifier; written for PyTorch, run by test_run.py."""

import argparse

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn.functional as F
import torch.optim.lr_scheduler as lr_scheduler
from torch import nn, optim
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return F.log_softmax(self.out(torch.relu(self.hidden(x))), dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    cuda = not args.no_cuda and torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    cudnn.benchmark = True
    assert not (dist.is_available() and dist.is_initialized())
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64 * 4).view(64, 4)
    y = (x.sum(1) > 0).long()
    model = Net().to(device)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.linspace(-0.5, 0.5, p.numel()).view_as(p))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = lr_scheduler.StepLR(optimizer, 1, 0.5)
    scaler = torch.cuda.amp.GradScaler(enabled=cuda)
    for epoch in range(args.epochs):
        for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16):
            optimizer.zero_grad()
            loss = F.nll_loss(model(Variable(inputs.to(device))), targets.to(device))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        schedule.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    accuracy = (model(x.to(device)).argmax(1).cpu() == y).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    print(model)


if __name__ == "__main__":
    main()
