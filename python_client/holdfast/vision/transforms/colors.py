# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Colours at random."""

from numbers import Number

import holdfast
from holdfast import nn

from . import functional as F
from .draws import happens, pair_of, uniform

_ADJUSTMENTS = (
    F.adjust_brightness,
    F.adjust_contrast,
    F.adjust_saturation,
    F.adjust_hue,
)


def _range(value, name, center=1.0, bounds=(0.0, float("inf"))):
    """[low, high] of a number around the centre or of a range; None: no change."""
    if isinstance(value, Number):
        if value < 0:
            raise ValueError(
                f"If {name} is a single number, it must be non negative. Got {value}"
            )
        low, high = center - float(value), center + float(value)
        # Factors are cut off at 0; a hue that leaves its bounds is an error.
        value = [max(low, 0.0) if center else low, high]
    low, high = pair_of(value, name)
    if not bounds[0] <= low <= high <= bounds[1]:
        raise ValueError(f"{name} values should be between {bounds}. Got {value}")
    return None if low == high == center else value


class ColorJitter(nn.Module):
    """Brightness, contrast, saturation and hue changed, in an order drawn each time.

    Each is a number around 1 (hue: around 0, up to 0.5) or a range (low, high).
    """

    def __init__(
        self,
        brightness: float = 0,
        contrast: float = 0,
        saturation: float = 0,
        hue: float = 0,
    ):
        super().__init__()
        self.brightness = _range(brightness, "brightness")
        self.contrast = _range(contrast, "contrast")
        self.saturation = _range(saturation, "saturation")
        self.hue = _range(hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness, contrast, saturation, hue):
        """(the order of the four, and the factor of each or None)."""
        order = holdfast.randperm(4)
        ranges = brightness, contrast, saturation, hue
        return order, *(None if each is None else uniform(*each) for each in ranges)

    def forward(self, img):
        order, *factors = self.get_params(
            self.brightness, self.contrast, self.saturation, self.hue
        )
        for i in order.tolist():
            if factors[i] is not None:
                img = _ADJUSTMENTS[i](img, factors[i])
        return img

    def __repr__(self):
        return (
            f"{type(self).__name__}(brightness={self.brightness}, "
            f"contrast={self.contrast}, saturation={self.saturation}, hue={self.hue})"
        )


class Grayscale(nn.Module):
    """An image in grey, of one channel or three equal ones."""

    def __init__(self, num_output_channels=1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img):
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self):
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(nn.Module):
    """An image in grey at probability p, with as many channels as it has."""

    def __init__(self, p=0.1):
        super().__init__()
        self.p = p

    def forward(self, img):
        channels = F.get_image_num_channels(img)
        if happens(self.p):
            return F.rgb_to_grayscale(img, channels)
        return img

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p})"
