# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A localisation network that turns pictures upright before they are classified."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.RandomState(10)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, kernel_size=3)
        self.fc = nn.Linear(4 * 5 * 5, 2)
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=3),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(True),
        )
        self.fc_loc = nn.Sequential(
            nn.Linear(4 * 5 * 5, 8), nn.ReLU(True), nn.Linear(8, 6)
        )

    def stn(self, x):
        xs = self.localization(x)
        xs = xs.view(-1, 4 * 5 * 5)
        theta = self.fc_loc(xs)
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = x.view(-1, 4 * 5 * 5)
        return F.log_softmax(self.fc(x), dim=1)


model = Net()
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.2, 0.2, p.shape)))
model.fc_loc[2].weight.data.mul_(0.1)
model.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
labels = torch.from_numpy(rng.randint(0, 2, 16))
pictures = torch.zeros(16, 1, 12, 12)
for i in range(16):
    at = rng.randint(3, 9)
    if labels[i] == 0:
        pictures[i, 0, at - 1 : at + 1, 2:10] = 1.0
    else:
        pictures[i, :, 2:10, at - 1 : at + 1] = 1.0
turn = torch.tensor(rng.uniform(-0.5, 0.5, 16), dtype=torch.float32)
zero = torch.zeros_like(turn)
rotation = torch.stack(
    [turn.cos(), -turn.sin(), zero, turn.sin(), turn.cos(), zero], dim=1
).reshape(-1, 2, 3)
pictures = F.grid_sample(
    pictures,
    F.affine_grid(rotation, list(pictures.shape), align_corners=True),
    align_corners=True,
)
print("turned", pictures.sum().item())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(pictures), labels)
    loss.backward()
    optimizer.step()
    print("Train Epoch: {} Loss: {:.6f}".format(epoch, loss.item()))
with torch.no_grad():
    upright = model.stn(pictures)
    small = F.interpolate(
        upright, scale_factor=0.5, mode="bilinear", align_corners=False
    )
    border = F.grid_sample(
        pictures[:1],
        torch.tensor([[[[-1.5, 0.2], [0.3, 1.7]]]]),
        mode="nearest",
        padding_mode="border",
        align_corners=False,
    )
print(upright.mean().item(), small.mean().item(), border.flatten().tolist())
