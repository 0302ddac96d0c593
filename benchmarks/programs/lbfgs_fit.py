# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""LBFGS in float64 on small problems, with and without a line search: `python
lbfgs_fit.py ROUNDS`. The optimizer's decisions are made of numbers it reads."""

import sys

import numpy
import torch
from torch import nn, optim


class Sequence(nn.Module):
    """Two LSTM cells, one step at a time."""

    def __init__(self):
        super().__init__()
        self.first = nn.LSTMCell(1, 16)
        self.second = nn.LSTMCell(16, 16)
        self.linear = nn.Linear(16, 1)

    def forward(self, waves):
        shape = (waves.size(0), 16)
        a, b, c, d = (torch.zeros(shape, dtype=torch.double) for _ in range(4))
        outputs = []
        for column in waves.split(1, dim=1):
            a, b = self.first(column, (a, b))
            c, d = self.second(a, (c, d))
            outputs.append(self.linear(c))
        return torch.cat(outputs, dim=1)


def fit_waves(random, steps):
    phase = random.uniform(0, 6, (8, 1))
    waves = torch.from_numpy(numpy.sin(phase + numpy.arange(41) / 4))
    model = Sequence().double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(model.parameters(), lr=0.5)
    for _ in range(steps):

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(waves[:, :-1]), waves[:, 1:])
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    return loss.item()


def fit_curve(random, steps):
    """Amplitudes and widths of bumps, by searching along each direction."""
    x = torch.linspace(-3, 3, 200, dtype=torch.double)
    y = torch.from_numpy(random.normal(0, 0.01, 200)) + torch.exp(-(x**2)) - x / 4
    bumps = torch.from_numpy(random.uniform(0.1, 1, (3, 4))).requires_grad_()
    optimizer = optim.LBFGS([bumps], max_iter=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        height, width, middle = bumps
        parts = [
            height[i] * torch.exp(-((x - middle[i]) ** 2) * width[i] ** 2)
            for i in range(4)
        ]
        loss = ((sum(parts) - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
    return loss.item()


def main():
    random = numpy.random.default_rng(0)
    torch.manual_seed(0)
    for i in range(int(sys.argv[1])):
        waves, curve = fit_waves(random, 3), fit_curve(random, 20)
        print(f"round {i}: waves {waves:.5f}, curve {curve:.6f}")


if __name__ == "__main__":
    main()
