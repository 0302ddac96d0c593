# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A generator and a discriminator on circles."""

import math

import holdfast as torch
from holdfast import nn, optim


def circle(count: int) -> torch.Tensor:
    angle = 2 * math.pi * torch.rand(count)
    return torch.stack((angle.cos(), angle.sin()), dim=1)


generator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
make = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
judge = optim.RMSprop(critic.parameters(), lr=2e-3)
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for step in range(3):
    fake: torch.Tensor = generator(torch.randn(8, 2))
    judge.zero_grad()
    loss = criterion(critic(circle(8)), ones) + criterion(critic(fake.detach()), zeros)
    loss.backward()
    judge.step()
    make.zero_grad()
    wanted = criterion(critic(fake), ones)
    wanted.backward()
    make.step()
    with torch.no_grad():
        spread = float(fake.std(dim=0).mean())
    print(step, round(loss.item(), 3), round(wanted.item(), 3), spread > 0)
x = circle(4).requires_grad_(True)
(gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
penalty.backward()
