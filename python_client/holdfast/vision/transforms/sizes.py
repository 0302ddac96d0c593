# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms of an image's size that draw nothing."""

from holdfast import nn

from . import functional as F
from .functional.geometry import resized_size, sides
from .functional.images import InterpolationMode, interpolation_mode, pair


class Resize(nn.Module):
    """An image resized to (h, w), or its smaller edge to a number.

    max_size limits the longer edge. Tensors are smoothed with antialias=True.
    """

    def __init__(
        self,
        size,
        interpolation=InterpolationMode.BILINEAR,
        max_size=None,
        antialias=None,
    ):
        super().__init__()
        resized_size(1, 1, size, max_size)  # for its errors
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    def forward(self, img):
        return F.resize(
            img, self.size, self.interpolation, self.max_size, self.antialias
        )

    def __repr__(self):
        return (
            f"{type(self).__name__}(size={self.size}, "
            f"interpolation={self.interpolation.value}, max_size={self.max_size}, "
            f"antialias={self.antialias})"
        )


class Pad(nn.Module):
    """An image with more around it: see functional.pad."""

    def __init__(self, padding, fill=0, padding_mode="constant"):
        super().__init__()
        sides(padding)  # for its errors
        if not isinstance(fill, (int, float, str, tuple, list)):
            raise TypeError(f"Got inappropriate fill arg: {type(fill)}")
        modes = ["constant", "edge", "reflect", "symmetric"]
        if padding_mode not in modes:
            raise ValueError(
                f"Padding mode should be one of {modes}. Got {padding_mode!r}"
            )
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self):
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
            f"padding_mode={self.padding_mode})"
        )


class CenterCrop(nn.Module):
    """The middle of an image, a number or (h, w); zeros where it is smaller."""

    def __init__(self, size):
        super().__init__()
        self.size = pair(size, "size")

    def forward(self, img):
        return F.center_crop(img, self.size)

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size})"


class FiveCrop(nn.Module):
    """A tuple of five: the corners and the centre, each a number or (h, w)."""

    def __init__(self, size):
        super().__init__()
        self.size = pair(size, "size")

    def forward(self, img):
        return F.five_crop(img, self.size)

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(nn.Module):
    """A tuple of ten: FiveCrop of the image and of its mirror image."""

    def __init__(self, size, vertical_flip=False):
        super().__init__()
        self.size = pair(size, "size")
        self.vertical_flip = vertical_flip

    def forward(self, img):
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self):
        return (
            f"{type(self).__name__}(size={self.size}, "
            f"vertical_flip={self.vertical_flip})"
        )
