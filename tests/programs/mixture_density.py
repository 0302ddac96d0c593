# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A mixture density network, a normalizing flow step and a few distributions."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch import distributions as D
from torch.distributions import (
    Categorical,
    Independent,
    MixtureSameFamily,
    Normal,
    kl_divergence,
)


class MDN(nn.Module):
    def __init__(self, hidden=10, components=3):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(1, hidden), nn.Softplus(), nn.Linear(hidden, 3 * components)
        )

    def forward(self, x):
        weight, mean, scale = self.trunk(x).chunk(3, dim=-1)
        return MixtureSameFamily(
            Categorical(logits=weight),
            Normal(mean, nn.functional.softplus(scale) + 1e-3),
        )


rng = np.random.default_rng(1)
y = rng.uniform(-1, 1, 60)
x = y + 0.3 * np.sin(2 * np.pi * y) + rng.normal(0, 0.05, 60)
x = torch.tensor(x, dtype=torch.float32)[:, None]
y = torch.tensor(y, dtype=torch.float32)
model = MDN()
for p in model.parameters():
    with torch.no_grad():
        p[...] = torch.from_numpy(rng.normal(0, 0.4, p.shape))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(6):
    optimizer.zero_grad()
    nll = -model(x).log_prob(y).mean()
    nll.backward()
    optimizer.step()
    print(f"step {step} nll {nll.item():.5f}")
mixture = model(x[:2])
print("mean", mixture.mean.tolist(), "variance", mixture.variance.sum().item())
print("kl", kl_divergence(Normal(0.0, 1.0), Normal(torch.tensor(1.0), 2.0)).item())
box = Independent(Normal(torch.zeros(3), torch.ones(3)), 1)
print(
    "independent",
    box.log_prob(torch.ones(3)).item(),
    box.event_shape,
    box.entropy().item(),
)
for d in (
    D.Beta(torch.tensor(2.0), torch.tensor(3.0)),
    D.Gamma(torch.tensor(2.0), torch.tensor(0.5)),
    D.Laplace(torch.tensor(0.3), torch.tensor(1.0)),
    D.Exponential(torch.tensor(1.5)),
    D.LogNormal(torch.tensor(0.0), torch.tensor(0.5)),
    D.StudentT(torch.tensor(4.0)),
):
    print(type(d).__name__, d.log_prob(torch.tensor(0.4)).item(), d.mean.item())
print(
    D.Dirichlet(torch.tensor([1.0, 2.0, 3.0]))
    .log_prob(torch.tensor([0.2, 0.3, 0.5]))
    .item()
)
print(
    D.MultivariateNormal(torch.zeros(2), torch.eye(2) * 2)
    .log_prob(torch.ones(2))
    .item()
)
print(
    D.Bernoulli(logits=torch.tensor(0.3)).probs.item(),
    D.Poisson(torch.tensor(3.0)).log_prob(torch.tensor(2.0)).item(),
)
scale = torch.tensor(0.7, requires_grad=True)
flow = D.TransformedDistribution(
    Normal(0.0, 1.0), [D.AffineTransform(0.5, scale), D.SigmoidTransform()]
)
loss = -flow.log_prob(torch.tensor([0.3, 0.6])).sum()
loss.backward()
print("flow", loss.item(), scale.grad.item(), math.isfinite(scale.grad.item()))
sample = Normal(scale, 1.0).rsample((5,))
sample.sum().backward()
print(sample.shape, scale.grad.item())
