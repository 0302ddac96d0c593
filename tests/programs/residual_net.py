# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A small residual network with batch normalisation."""

from typing import List, Optional, Type

import numpy as np
import torch
from torch import Tensor, nn


def conv3x3(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(
        in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False
    )


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Optional[nn.Module] = None,
    ) -> None:
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(
        self, block: Type[BasicBlock], layers: List[int], num_classes: int = 5
    ) -> None:
        super().__init__()
        self.inplanes = 8
        self.stem = nn.Sequential(
            conv3x3(3, 8), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        )
        self.layer1 = self._make_layer(block, 8, layers[0])
        self.layer2 = self._make_layer(block, 16, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, blocks, stride=1) -> nn.Sequential:
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes, kernel_size=1, stride=stride),
                nn.BatchNorm2d(planes),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


rng = np.random.default_rng(0)
model = ResNet(BasicBlock, [1, 2])
state = {}
for name, value in model.state_dict().items():
    if name.endswith("bias"):
        state[name] = torch.zeros_like(value)
    elif value.ndim > 1:
        drawn = rng.standard_normal(tuple(value.shape)) * 0.15
        state[name] = torch.tensor(drawn, dtype=torch.float32)
    else:
        state[name] = value
print(model.load_state_dict(state))
decay = [p for n, p in model.named_parameters() if p.ndim > 1]
rest = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = torch.optim.SGD(
    [{"params": decay, "weight_decay": 5e-4}, {"params": rest}],
    lr=0.02,
    momentum=0.9,
    nesterov=True,
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
criterion = nn.CrossEntropyLoss()
images = torch.as_tensor(rng.standard_normal((16, 3, 10, 10)), dtype=torch.float)
labels = torch.as_tensor(rng.integers(0, 5, 16))
for step in range(6):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"step {step}: loss {loss.item():.5f} lr {scheduler.get_last_lr()[0]:.6f}")
model.eval()
with torch.no_grad():
    top = torch.topk(model(images), k=2, dim=1).indices
print("top-2 hits", (top == labels[:, None]).any(1).sum().item())
print("running mean", model.stem[1].running_mean.abs().mean().item())
print("parameters", sum(p.numel() for p in model.parameters() if p.requires_grad))
