# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A variational autoencoder on binary pictures."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

noise = np.random.default_rng(3)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(36, 24)
        self.fc21 = nn.Linear(24, 3)
        self.fc22 = nn.Linear(24, 3)
        self.fc3 = nn.Linear(3, 24)
        self.fc4 = nn.Linear(24, 36)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.from_numpy(noise.standard_normal(std.shape)).type_as(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE()
weights = np.random.default_rng(0)
with torch.no_grad():
    for name, p in model.named_parameters():
        p.copy_(torch.tensor(weights.normal(0, 0.2, size=p.shape)))
pictures = np.kron(weights.integers(0, 2, (64, 3, 3)), np.ones((2, 2)))
data = torch.from_numpy(pictures.astype(np.float32))[:, None]
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=False)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 4):
    model.train()
    train_loss = 0
    for batch_idx, batch in enumerate(loader):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(batch)
        loss = loss_function(recon_batch, batch, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(data)))
    model.eval()
    with torch.no_grad():
        sample = torch.linspace(-1, 1, 12).view(4, 3)
        pixels = model.decode(sample).cpu().view(4, 1, 6, 6)
        comparison = torch.cat([data[:4], pixels.round()])
        print(tuple(comparison.shape), "mean pixel {:.5f}".format(pixels.mean()))
