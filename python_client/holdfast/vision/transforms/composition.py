# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms made of others."""

import random

import holdfast
from holdfast import nn


def _lines(title, transforms, first=()):
    body = [*first, *(str(transform) for transform in transforms)]
    return "\n".join([f"{title}(", *(f"    {line}" for line in body), ")"])


class Compose:
    """The transforms, one after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return _lines(type(self).__name__, self.transforms)


class Lambda:
    """A function of the image; TypeError where it cannot be called."""

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(
                f"Argument lambd should be callable, got {type(lambd).__name__!r}"
            )
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def __repr__(self):
        return f"{type(self).__name__}()"


class RandomTransforms:
    """Base of what chooses among transforms."""

    def __init__(self, transforms):
        if not isinstance(transforms, (list, tuple)):
            raise TypeError(
                f"Argument transforms should be a sequence. Got {type(transforms)}"
            )
        self.transforms = transforms

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} must define __call__")

    def __repr__(self):
        return _lines(type(self).__name__, self.transforms)


class RandomApply(nn.Module):
    """All of the transforms (a list or a ModuleList), or, at 1 - p, none."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img):
        if self.p < holdfast.rand(1):
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return _lines(type(self).__name__, self.transforms, [f"p={self.p}"])


class RandomOrder(RandomTransforms):
    """All of the transforms, in an order drawn from Python's random."""

    def __call__(self, img):
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms, drawn by the weights `p` from Python's random."""

    def __init__(self, transforms, p=None):
        super().__init__(transforms)
        if p is not None and not isinstance(p, (list, tuple)):
            raise TypeError(f"Argument p should be a sequence. Got {type(p)}")
        self.p = p

    def __call__(self, *args):
        (transform,) = random.choices(self.transforms, weights=self.p)
        return transform(*args)

    def __repr__(self):
        return f"{super().__repr__()}(p={self.p})"
