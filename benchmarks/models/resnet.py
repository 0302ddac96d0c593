# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Residual networks (He et al., "Deep Residual Learning", 2015)."""

from images import IMAGENET, Classification
from torch import nn


def conv(before, after, kernel, stride=1):
    """A convolution that keeps the size at stride 1, and batch norm."""
    return [
        nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(after),
    ]


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)); the shortcut is a 1x1 convolution where sizes
    differ."""

    def __init__(self, body, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(*conv(before, after, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def basic(before, width, stride):
    body = [
        *conv(before, width, 3, stride),
        nn.ReLU(inplace=True),
        *conv(width, width, 3),
    ]
    return Residual(body, before, width, stride), width


def bottleneck(before, width, stride):
    body = [
        *conv(before, width, 1),
        nn.ReLU(inplace=True),
        *conv(width, width, 3, stride),
        nn.ReLU(inplace=True),
        *conv(width, 4 * width, 1),
    ]
    return Residual(body, before, 4 * width, stride), 4 * width


def resnet(block, depths, classes=IMAGENET):
    blocks, channels = [], 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            stride = 2 if stage > 0 and i == 0 else 1
            layer, channels = block(channels, 64 << stage, stride)
            blocks.append(layer)
    return nn.Sequential(
        *conv(3, 64, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, classes),
    )


def resnet18(classes=IMAGENET):
    return resnet(basic, (2, 2, 2, 2), classes)


def resnet50(classes=IMAGENET):
    return resnet(bottleneck, (3, 4, 6, 3), classes)


TASK = Classification(resnet50, batch=4)
