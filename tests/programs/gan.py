# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A generative adversarial network on a ring of points: two optimizers, detach()."""

import math

import numpy as np
import torch
from torch import autograd, nn, optim
from torch.autograd import Variable

rng = np.random.RandomState(0)


def uniform_init(module):
    classname = module.__class__.__name__
    if classname.find("Linear") != -1:
        bound = 1.0 / math.sqrt(module.in_features)
        w = rng.uniform(-bound, bound, size=module.weight.size())
        module.weight.data = torch.FloatTensor(w.tolist())
        module.bias.data.fill_(0)


class Generator(nn.Module):
    def __init__(self, nz=4, nh=16):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, nh), nn.BatchNorm1d(nh), nn.LeakyReLU(0.2), nn.Linear(nh, 2)
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, nh=16):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(2, nh),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(nh, nh),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(nh, 1),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


netG, netD = Generator(), Discriminator()
netG.apply(uniform_init)
netD.apply(uniform_init)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.002, betas=(0.5, 0.999))
batch, real_label, fake_label = 32, 1.0, 0.0
for step in range(12):
    # Update D: maximize log(D(x)) + log(1 - D(G(z)))
    netD.zero_grad()
    angle = rng.rand(batch) * 2 * np.pi
    real = torch.tensor(np.stack([np.cos(angle), np.sin(angle)], 1), dtype=torch.float)
    label = torch.full((batch,), real_label, dtype=real.dtype)
    errD_real = criterion(netD(real), label)
    errD_real.backward()
    noise = Variable(torch.from_numpy(rng.randn(batch, 4)).float())
    fake = netG(noise)
    label.fill_(fake_label)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    optimizerD.step()
    # Update G: maximize log(D(G(z)))
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    label.fill_(real_label)
    output = netD(fake)
    errG = criterion(output, label)
    errG.backward()
    optimizerG.step()
    for p in netD.parameters():
        p.requires_grad = True
    print(
        "[%d] Loss_D: %.4f Loss_G: %.4f D(G(z)): %.4f"
        % (step, (errD_real + errD_fake).item(), errG.item(), output.mean().item())
    )

# A gradient penalty on points between real and fake ones.
alpha = torch.from_numpy(rng.rand(batch, 1).astype("float32"))
between = (alpha * real + (1 - alpha) * fake.detach()).requires_grad_(True)
score = netD(between)
(slope,) = autograd.grad(
    outputs=score,
    inputs=between,
    grad_outputs=torch.ones_like(score),
    create_graph=True,
    retain_graph=True,
    only_inputs=True,
)
penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
netD.zero_grad()
penalty.backward()
print("penalty %.5f" % penalty.item())
print(
    "its gradient",
    [round(p.grad.norm().item(), 5) for p in list(netD.parameters())[:3]],
)
