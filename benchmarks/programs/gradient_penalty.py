# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A Wasserstein GAN with a gradient penalty (Gulrajani et al. 2017) on a ring of
points: `python gradient_penalty.py STEPS`. Five steps of the critic each, whose losses
are read."""

import sys

import numpy
import torch
from torch import nn, optim

BATCH, NOISE, CRITIC_STEPS = 64, 8, 5


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, outputs),
    )


def ring(random):
    angle = random.integers(8, size=BATCH) * (numpy.pi / 4)
    points = numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1)
    points += 0.02 * random.standard_normal(points.shape)
    return torch.from_numpy(points.astype("float32"))


def penalty(critic, real, fake):
    share = torch.rand(BATCH, 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    scores = critic(between)
    (slopes,) = torch.autograd.grad(
        scores, between, grad_outputs=torch.ones_like(scores), create_graph=True
    )
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean()


def main():
    torch.manual_seed(0)
    random = numpy.random.default_rng(0)
    generator, critic = mlp(NOISE, 2), mlp(2, 1)
    for_critic = optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.9))
    for_generator = optim.Adam(generator.parameters(), lr=1e-4, betas=(0.5, 0.9))
    for step in range(int(sys.argv[1])):
        losses = []
        for _ in range(CRITIC_STEPS):
            real = ring(random)
            fake = generator(torch.randn(BATCH, NOISE)).detach()
            distance = critic(fake).mean() - critic(real).mean()
            loss = distance + 10 * penalty(critic, real, fake)
            for_critic.zero_grad()
            loss.backward()
            for_critic.step()
            losses.append(loss.item())
        loss = -critic(generator(torch.randn(BATCH, NOISE))).mean()
        for_generator.zero_grad()
        loss.backward()
        for_generator.step()
        if step % 50 == 0:
            print(f"{step}: critic {sum(losses) / CRITIC_STEPS:.4f}, {loss.item():.4f}")
    print(f"first weight {generator[0].weight[0, 0].item():.4f}")


if __name__ == "__main__":
    main()
