# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rotations and affine maps at random."""

from numbers import Number

from holdfast import nn

from . import functional as F
from .draws import degrees_of, pair_of, uniform
from .functional.images import InterpolationMode, interpolation_mode


def _fill(fill):
    if fill is None:
        return 0
    if not isinstance(fill, (Number, list, tuple)):
        raise TypeError(f"Fill should be either a sequence or a number. Got {fill!r}")
    return fill


class RandomRotation(nn.Module):
    """An image turned by degrees: (low, high), or a number for -number..number.

    interpolation, expand, center and fill as for functional.rotate.
    """

    def __init__(
        self,
        degrees,
        interpolation=InterpolationMode.NEAREST,
        expand=False,
        center=None,
        fill=0,
    ):
        super().__init__()
        self.degrees = degrees_of(degrees, "degrees")
        self.interpolation = interpolation_mode(interpolation)
        self.expand = expand
        self.center = None if center is None else pair_of(center, "center")
        self.fill = _fill(fill)

    @staticmethod
    def get_params(degrees):
        """The angle."""
        return uniform(*degrees)

    def forward(self, img):
        angle = self.get_params(self.degrees)
        return F.rotate(
            img, angle, self.interpolation, self.expand, self.center, self.fill
        )

    def __repr__(self):
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={self.interpolation.value}, expand={self.expand}{center}, "
            f"fill={self.fill})"
        )


class RandomAffine(nn.Module):
    """An image turned, shifted, scaled and sheared around its middle.

    degrees: as for RandomRotation. translate: the largest shift (x, y), as shares of
    the width and the height. scale: (low, high). shear: degrees along x, a number or
    (low, high), or those of x and y, four numbers.
    """

    def __init__(
        self,
        degrees,
        translate=None,
        scale=None,
        shear=None,
        interpolation=InterpolationMode.NEAREST,
        fill=0,
        center=None,
    ):
        super().__init__()
        self.degrees = degrees_of(degrees, "degrees")
        if translate is not None and any(
            not 0 <= share <= 1 for share in pair_of(translate, "translate")
        ):
            raise ValueError(
                f"translation values should be between 0 and 1. Got {translate}"
            )
        if scale is not None and min(pair_of(scale, "scale")) <= 0:
            raise ValueError(f"scale values should be positive. Got {scale}")
        if isinstance(shear, (list, tuple)) and len(shear) == 4:
            shear = [float(value) for value in shear]
        elif shear is not None:
            shear = degrees_of(shear, "shear")
        self.translate = translate
        self.scale = scale
        self.shear = shear
        self.interpolation = interpolation_mode(interpolation)
        self.fill = _fill(fill)
        self.center = None if center is None else pair_of(center, "center")

    @staticmethod
    def get_params(degrees, translate, scale_ranges, shears, img_size):
        """(angle, (x, y), scale, (shear x, shear y)) for an image (width, height)."""
        angle = uniform(*degrees)
        shift, scale, shear = (0, 0), 1.0, (0.0, 0.0)
        if translate is not None:
            reach = [share * size for share, size in zip(translate, img_size)]
            shift = tuple(round(uniform(-most, most)) for most in reach)
        if scale_ranges is not None:
            scale = uniform(*scale_ranges)
        if shears is not None:
            along_x = uniform(shears[0], shears[1])
            shear = along_x, uniform(*shears[2:]) if len(shears) == 4 else 0.0
        return angle, shift, scale, shear

    def forward(self, img):
        size = F.get_image_size(img)
        params = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, size
        )
        return F.affine(img, *params, self.interpolation, self.fill, self.center)

    def __repr__(self):
        parts = [f"degrees={self.degrees}"]
        for name in ("translate", "scale", "shear"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)}")
        if self.interpolation != InterpolationMode.NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"
