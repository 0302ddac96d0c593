# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Model-agnostic meta-learning of sine waves (Finn et al. 2017): `python maml.py
META_STEPS`. Four tasks a step, two inner steps each through their own gradients."""

import sys

import numpy
import torch
from torch import nn, optim
from torch.nn import functional

TASKS, SHOTS, INNER, RATE = 4, 10, 2, 0.01


def network(x, weights):
    w1, b1, w2, b2, w3, b3 = weights
    x = functional.relu(functional.linear(x, w1, b1))
    x = functional.relu(functional.linear(x, w2, b2))
    return functional.linear(x, w3, b3)


def task(random):
    """The inputs and outputs of one wave, to adapt to and to be judged by."""
    height, phase = random.uniform(0.1, 5), random.uniform(0, numpy.pi)
    x = random.uniform(-5, 5, (2 * SHOTS, 1)).astype("float32")
    y = height * numpy.sin(x - phase).astype("float32")
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    return x[:SHOTS], y[:SHOTS], x[SHOTS:], y[SHOTS:]


def main():
    torch.manual_seed(0)
    random = numpy.random.default_rng(0)
    layers = nn.Linear(1, 40), nn.Linear(40, 40), nn.Linear(40, 1)
    weights = [p for layer in layers for p in layer.parameters()]
    optimizer = optim.Adam(weights, lr=1e-3)
    for step in range(int(sys.argv[1])):
        total = 0.0
        for _ in range(TASKS):
            x, y, new_x, new_y = task(random)
            fast = weights
            for _ in range(INNER):
                loss = functional.mse_loss(network(x, fast), y)
                slopes = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [w - RATE * s for w, s in zip(fast, slopes)]
            total = total + functional.mse_loss(network(new_x, fast), new_y)
        optimizer.zero_grad()
        (total / TASKS).backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step}: {total.item() / TASKS:.4f}")
    print(f"first weight {weights[0][0].item():.4f}")


if __name__ == "__main__":
    main()
