# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tones changed at random: functional.invert and its kin, each at probability p."""

from holdfast import nn

from . import functional as F
from .draws import happens


class _AtRandom(nn.Module):
    """What `change` makes of an image, at probability p."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, img):
        return self.change(img) if happens(self.p) else img

    def __repr__(self):
        return f"{type(self).__name__}({self.shown()}p={self.p})"

    def shown(self):
        """The arguments before p."""
        return ""


class RandomInvert(_AtRandom):
    """The negative of an image."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def change(self, img):
        return F.invert(img)


class RandomPosterize(_AtRandom):
    """An image with only the first `bits` of each value's 8 bits."""

    def __init__(self, bits, p=0.5):
        super().__init__(p)
        self.bits = bits

    def change(self, img):
        return F.posterize(img, self.bits)

    def shown(self):
        return f"bits={self.bits},"


class RandomSolarize(_AtRandom):
    """An image with the values from the threshold on inverted."""

    def __init__(self, threshold, p=0.5):
        super().__init__(p)
        self.threshold = threshold

    def change(self, img):
        return F.solarize(img, self.threshold)

    def shown(self):
        return f"threshold={self.threshold},"


class RandomAdjustSharpness(_AtRandom):
    """An image with its sharpness times sharpness_factor."""

    def __init__(self, sharpness_factor, p=0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def change(self, img):
        return F.adjust_sharpness(img, self.sharpness_factor)

    def shown(self):
        return f"sharpness_factor={self.sharpness_factor},"


class RandomAutocontrast(_AtRandom):
    """An image whose channels each reach from 0 to the largest value."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def change(self, img):
        return F.autocontrast(img)


class RandomEqualize(_AtRandom):
    """An image whose channels each have all values about equally often."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def change(self, img):
        return F.equalize(img)
