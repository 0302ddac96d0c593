# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A step of training a classifier of images, on synthetic ones."""

import torch
from torch.nn import functional

IMAGENET = 1000  # classes


class Classification:
    def __init__(self, build, batch, size=224):
        self.build = build
        self.batch = batch
        self.size = size

    def data(self, random):
        """NumPy: images [batch, 3, size, size], labels [batch]."""
        shape = (self.batch, 3, self.size, self.size)
        labels = random.integers(0, IMAGENET, self.batch)
        return random.standard_normal(shape, "float32"), labels

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.001, momentum=0.9, weight_decay=1e-4)

    def loss(self, model, images, labels):
        return functional.cross_entropy(model(images), labels)
