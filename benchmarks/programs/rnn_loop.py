# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A gated recurrent layer written as a loop over x[t]: `python rnn_loop.py STEPS`.
Adds marked numbers of a sequence (Hochreiter & Schmidhuber 1997)."""

import sys

import numpy
import torch
from torch import nn, optim
from torch.nn import functional

HIDDEN, LENGTH, BATCH = 48, 40, 16


class Gated(nn.Module):
    """A GRU of separate gates."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.reset = nn.Linear(inputs + hidden, hidden)
        self.update = nn.Linear(inputs + hidden, hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        states = []
        for t in range(x.size(0)):
            both = torch.cat([x[t], h], 1)
            r = torch.sigmoid(self.reset(both))
            z = torch.sigmoid(self.update(both))
            n = torch.tanh(self.candidate(torch.cat([x[t], r * h], 1)))
            h = (1 - z) * n + z * h
            states.append(h)
        return torch.stack(states), h


def batch(random):
    """[LENGTH, BATCH, 2] numbers and marks, and the sums of the marked ones."""
    numbers = random.uniform(0, 1, (LENGTH, BATCH)).astype("float32")
    marks = numpy.zeros_like(numpy.asarray(numbers))
    for i in range(BATCH):
        marks[random.choice(LENGTH, 2, replace=False), i] = 1
    sums = (numbers * marks).sum(0)
    return torch.from_numpy(numpy.stack([numbers, marks], 2)), torch.from_numpy(sums)


def main():
    torch.manual_seed(0)
    random = numpy.random.default_rng(0)
    layer, head = Gated(2, HIDDEN), nn.Linear(HIDDEN, 1)
    parameters = [*layer.parameters(), *head.parameters()]
    optimizer = optim.Adam(parameters, lr=1e-3)
    for step in range(int(sys.argv[1])):
        x, y = batch(random)
        _, last = layer(x, torch.zeros(BATCH, HIDDEN))
        loss = functional.mse_loss(head(last).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"{step}: {loss.item():.4f}")
    print(f"first weight {parameters[0][0, 0].item():.4f}")


if __name__ == "__main__":
    main()
