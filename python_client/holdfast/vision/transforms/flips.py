# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Flips at random."""

from holdfast import nn

from . import functional as F
from .draws import happens


class RandomHorizontalFlip(nn.Module):
    """Left and right exchanged, at probability p."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, img):
        return F.hflip(img) if happens(self.p) else img

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(nn.Module):
    """Top and bottom exchanged, at probability p."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, img):
        return F.vflip(img) if happens(self.p) else img

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p})"
