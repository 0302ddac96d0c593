# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Random numbers from generators: repeatable, apart, restorable."""

import random

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


set_seed(0)
a = torch.rand(4)
set_seed(0)
print("seeds repeat", torch.equal(a, torch.rand(4)), torch.initial_seed())
g = torch.Generator()
g.manual_seed(7)
first = torch.randn(3, generator=g)
state = g.get_state()
second = torch.randn(3, generator=g)
g.set_state(state)
print("states too", torch.equal(second, torch.randn(3, generator=g)), g.initial_seed())
print("apart", not torch.equal(first, second))
before = torch.get_rng_state()
x = torch.randint(0, 10, (5,))
torch.set_rng_state(before)
print("global state", torch.equal(x, torch.randint(0, 10, (5,))))
with torch.random.fork_rng():
    torch.manual_seed(99)
    inside = torch.rand(1)
after = torch.rand(1)
torch.set_rng_state(before)
torch.randint(0, 10, (5,))
print("forked", torch.equal(after, torch.rand(1)))
permutation = torch.randperm(10, generator=torch.Generator().manual_seed(3))
print("permutation", sorted(permutation.tolist()) == list(range(10)))
dataset = TensorDataset(torch.arange(20).float(), torch.arange(20) % 2)
parts = random_split(dataset, [15, 5], generator=torch.Generator().manual_seed(42))
again = random_split(dataset, [15, 5], generator=torch.Generator().manual_seed(42))
print("splits", [len(p) for p in parts], parts[1].indices == again[1].indices)
orders = []
for _ in range(2):
    loader = DataLoader(
        dataset, 6, shuffle=True, generator=torch.Generator().manual_seed(1)
    )
    orders.append([i for batch, _ in loader for i in batch.tolist()])
print("loaders", orders[0] == orders[1], sorted(orders[0]) == list(range(20)))
sampler = WeightedRandomSampler([0.0, 1.0] * 10, num_samples=30, replacement=True)
print("weights", all(i % 2 == 1 for i in sampler), len(list(RandomSampler(dataset))))
big = torch.empty(20000).normal_(2.0, 3.0, generator=g)
print("normal", abs(big.mean().item() - 2) < 0.1, abs(big.std().item() - 3) < 0.1)
u = torch.empty(20000).uniform_(-1, 3)
print(
    "uniform", u.min().item() >= -1, u.max().item() < 3, abs(u.mean().item() - 1) < 0.05
)
coins = torch.bernoulli(torch.full((20000,), 0.3), generator=g)
print("bernoulli", abs(coins.mean().item() - 0.3) < 0.02, sorted(set(coins.tolist())))
draws = torch.multinomial(torch.tensor([0.1, 0.0, 0.9]), 20000, replacement=True)
counts = torch.bincount(draws, minlength=3)
print("multinomial", counts[1].item(), abs(counts[2].item() / 20000 - 0.9) < 0.02)
kept = torch.nn.functional.dropout(torch.ones(20000), 0.25)
print(
    "dropout", abs(kept.mean().item() - 1) < 0.03, abs(kept.max().item() - 4 / 3) < 1e-6
)
m = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
print("categorical", abs(m.sample((20000,)).float().mean().item() - 0.75) < 0.02)
