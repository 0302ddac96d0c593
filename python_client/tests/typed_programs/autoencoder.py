# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A variational autoencoder of small images."""

from typing import NamedTuple

import holdfast as torch
import holdfast.nn.functional as F
from holdfast import Tensor, nn
from holdfast.distributions import Normal, kl_divergence


class Output(NamedTuple):
    image: Tensor
    mean: Tensor
    log_variance: Tensor


class Autoencoder(nn.Module):
    def __init__(self, channels: int = 4, latent: int = 2) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, channels, kernel_size=3, stride=2, padding=1),
            nn.BatchNorm2d(channels),
            nn.GELU(),
            nn.Flatten(),
        )
        self.mean = nn.Linear(channels * 16, latent)
        self.log_variance = nn.Linear(channels * 16, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, channels * 16),
            nn.Unflatten(1, (channels, 4, 4)),
            nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Output:
        hidden = self.encode(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return Output(self.decode(z), mean, log_variance)


def loss_of(output: Output, x: Tensor, beta: float = 1.0) -> Tensor:
    error = F.binary_cross_entropy(output.image, x, reduction="sum")
    posterior = Normal(output.mean, (0.5 * output.log_variance).exp())
    prior = Normal(torch.zeros(2), torch.ones(2))
    return (error + beta * kl_divergence(posterior, prior).sum()) / x.shape[0]


images = torch.rand(4, 1, 8, 8)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
for _ in range(2):
    output = model(images)
    loss = loss_of(output, images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), output.image.shape)
sizes: dict[str, int] = {name: p.numel() for name, p in model.named_parameters()}
print(sum(sizes.values()))
