# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Crops at random."""

import math

import holdfast
from holdfast import nn

from . import functional as F
from .draws import below, pair_of, uniform
from .functional.images import InterpolationMode, interpolation_mode, pair


class RandomCrop(nn.Module):
    """A part (h, w), anywhere in the image.

    padding is added first (see functional.pad), pad_if_needed adds to smaller
    images; ValueError for an image that is still smaller.
    """

    def __init__(
        self,
        size,
        padding=None,
        pad_if_needed=False,
        fill=0,
        padding_mode="constant",
    ):
        super().__init__()
        self.size = pair(size, "size")
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img, output_size):
        """(top, left, height, width) of a part of output_size (h, w)."""
        _, height, width = F.get_dimensions(img)
        rows, columns = output_size
        if height < rows or width < columns:
            raise ValueError(
                f"Required crop size {(rows, columns)} is larger than input image "
                f"size {(height, width)}"
            )
        if (height, width) == (rows, columns):
            return 0, 0, height, width
        top = below(height - rows + 1)
        left = below(width - columns + 1)
        return top, left, rows, columns

    def forward(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, height, width = F.get_dimensions(img)
            rows, columns = self.size
            if width < columns:
                around = [columns - width, 0]
                img = F.pad(img, around, self.fill, self.padding_mode)
            if height < rows:
                around = [0, rows - height]
                img = F.pad(img, around, self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(nn.Module):
    """A part of the image resized to (h, w).

    scale: the part's share of the area; ratio: its width / height, from a
    logarithmic range. Where ten draws do not fit, the middle is taken.
    """

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3.0 / 4.0, 4.0 / 3.0),
        interpolation=InterpolationMode.BILINEAR,
        antialias=None,
    ):
        super().__init__()
        self.size = pair(size, "size")
        self.scale = ordered(pair_of(scale, "scale"), "scale")
        self.ratio = above_zero(ratio, "ratio")
        self.interpolation = interpolation_mode(interpolation)
        self.antialias = antialias

    @staticmethod
    def get_params(img, scale, ratio):
        """(top, left, height, width) of a part."""
        _, height, width = F.get_dimensions(img)
        for _ in range(10):
            area = height * width * uniform(*scale)
            columns, rows = rectangle(area, ratio)
            if 0 < columns <= width and 0 < rows <= height:
                top = below(height - rows + 1)
                left = below(width - columns + 1)
                return top, left, rows, columns
        rows, columns = height, width
        if width / height < min(ratio):
            rows = round(width / min(ratio))
        elif width / height > max(ratio):
            columns = round(height * max(ratio))
        return (height - rows) // 2, (width - columns) // 2, rows, columns

    def forward(self, img):
        place = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(
            img, *place, self.size, self.interpolation, antialias=self.antialias
        )

    def __repr__(self):
        scale = tuple(round(value, 4) for value in self.scale)
        ratio = tuple(round(value, 4) for value in self.ratio)
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


def ordered(range_, name):
    """(low, high), both above 0 but for a low of 0; ValueError otherwise."""
    low, high = range_
    if not 0 <= low <= high or high <= 0:
        raise ValueError(
            f"{name} should be of kind (min, max), 0 or more. Got {range_}"
        )
    return range_


def above_zero(range_, name):
    """ordered(), its low end above 0 as well."""
    if ordered(pair_of(range_, name), name)[0] == 0:
        raise ValueError(f"{name} should be above 0. Got {range_}")
    return range_


def rectangle(area, ratio):
    """(one side, the other): of the area, their quotient drawn from a range."""
    low, high = (math.log(value) for value in ratio)
    # The exponential in float32, as of the draw itself.
    quotient = holdfast.empty(1).uniform_(low, high).exp().item()
    return round(math.sqrt(area * quotient)), round(math.sqrt(area / quotient))
