# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A convolutional autoencoder, then a small classifier taught by a large one."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2, padding=1),
            nn.GroupNorm(2, 6),
            nn.ELU(),
            nn.Conv2d(6, 8, 3, stride=2, padding=1),
            nn.InstanceNorm2d(8, affine=True),
            nn.SiLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1),
            nn.Hardswish(),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(6, 4, 3, padding="same", padding_mode="reflect"),
            nn.PixelShuffle(2),
            nn.AvgPool2d(2),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


rng = np.random.RandomState(6)


def fill(module):
    for name, p in module.named_parameters(recurse=False):
        if name == "weight" and p.dim() == 1:
            continue  # of a norm: ones
        p.data = torch.from_numpy(rng.normal(0, 0.2, p.shape)).to(p)


net = AutoEncoder()
net.apply(fill)
waves = np.sin(np.add.outer(np.arange(12), np.arange(12))[None] * rng.rand(24, 1, 1))
images = torch.from_numpy(waves[:, None].astype("float32"))
data = ConcatDataset(
    [TensorDataset(images[:12]), Subset(TensorDataset(images), range(12, 24))]
)
optimizer = torch.optim.Adamax(net.parameters(), lr=0.01)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
for epoch in range(4):
    running = []
    for (batch,) in DataLoader(data, batch_size=8):
        out = net(batch)
        loss = F.huber_loss(out, batch, delta=0.5) + 0.01 * F.l1_loss(out, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    plateau.step(np.mean(running))
    print(epoch, np.mean(running), optimizer.param_groups[0]["lr"])
print("code", net.encoder(images[:1]).shape, net.encoder(images[:1]).std().item())

teacher = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
student = nn.Linear(4, 3)
for module in (*teacher, student):
    fill(module)
points = torch.from_numpy(rng.randn(32, 4)).float()
hard = torch.from_numpy(rng.randint(0, 3, 32))
teacher.eval()
optimizer = torch.optim.RAdam(student.parameters(), lr=0.1)
T = 2.0
for step in range(5):
    with torch.no_grad():
        soft = F.softmax(teacher(points) / T, dim=-1)
    logits = student(points)
    kd = (
        F.kl_div(F.log_softmax(logits / T, dim=-1), soft, reduction="batchmean") * T * T
    )
    loss = 0.7 * kd + 0.3 * F.cross_entropy(
        logits, hard, weight=torch.tensor([1.0, 2.0, 0.5])
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("distill", step, kd.item(), loss.item())
anchor, positive, negative = points[:8], points[8:16], points[16:24]
print(nn.TripletMarginLoss(margin=0.5)(anchor, positive, negative).item())
print(nn.CosineEmbeddingLoss()(anchor, positive, torch.ones(8)).item())
print(nn.MarginRankingLoss(0.1)(anchor[:, 0], positive[:, 0], torch.ones(8)).item())
print(
    nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))(
        anchor[:, 0], (hard[:8] > 0).float()
    ).item()
)
