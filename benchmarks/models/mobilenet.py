# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 (Sandler et al., "Inverted residuals and linear bottlenecks",
2018)."""

from images import IMAGENET, Classification
from torch import nn

# Expansion, channels, blocks, stride of the first.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def conv(before, after, kernel=1, stride=1, groups=1):
    return [
        nn.Conv2d(
            before, after, kernel, stride, kernel // 2, groups=groups, bias=False
        ),
        nn.BatchNorm2d(after),
        nn.ReLU6(inplace=True),
    ]


class InvertedResidual(nn.Module):
    def __init__(self, before, after, stride, expansion):
        super().__init__()
        hidden = before * expansion
        layers = conv(before, hidden) if expansion > 1 else []
        layers += conv(hidden, hidden, 3, stride, groups=hidden)
        layers += conv(hidden, after)[:2]
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and before == after

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


def mobilenet_v2(classes=IMAGENET):
    layers, channels = conv(3, 32, 3, 2), 32
    for expansion, after, blocks, stride in STAGES:
        for i in range(blocks):
            first = stride if i == 0 else 1
            layers.append(InvertedResidual(channels, after, first, expansion))
            channels = after
    return nn.Sequential(
        *layers,
        *conv(channels, 1280),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(1280, classes),
    )


TASK = Classification(mobilenet_v2, batch=8)
