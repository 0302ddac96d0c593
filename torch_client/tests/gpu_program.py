# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A training as written for a box with a GPU, which holdfast is not mentioned in:
`holdfast run --torch gpu_program.py --epochs 3`."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.layers(x)


def make_data(count):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 2, generator=generator, device="cpu")
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this program needs a GPU")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("on", torch.cuda.device_count(), "GPU", torch.cuda.get_device_name(0))
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    data = make_data(128)
    loader = DataLoader(
        data, batch_size=32, shuffle=True, pin_memory=True, num_workers=args.workers
    )
    for epoch in range(args.epochs):
        total = torch.zeros((), device="cuda")
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.to("cuda:0", non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        torch.cuda.synchronize()
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")
    with torch.no_grad(), torch.device("cuda"):
        grid = torch.linspace(-1, 1, 5)
        guessed = model(torch.stack([grid, grid], 1)).argmax(1)
    print("guessed", guessed.cpu().numpy().tolist(), guessed.device)
    moved = Net().cuda()
    print(next(moved.parameters()).device, torch.cuda.memory_allocated() > 0)


if __name__ == "__main__":
    main()
