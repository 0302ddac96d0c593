# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""VGG-19 (Simonyan and Zisserman, "Very deep convolutional networks for
large-scale image recognition", 2014, configuration E)."""

from images import IMAGENET, Classification
from torch import nn

STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))  # channels, layers


def vgg19(classes=IMAGENET):
    layers, before = [], 3
    for channels, depth in STAGES:
        for _ in range(depth):
            layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
            before = channels
        layers.append(nn.MaxPool2d(2))
    for module in layers:
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(module.bias)
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(512 * 7 * 7, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(4096, classes),
    )


TASK = Classification(vgg19, batch=2)
