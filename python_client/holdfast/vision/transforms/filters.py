# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Blurring and erasing at random."""

from numbers import Number

import holdfast
from holdfast import nn

from . import functional as F
from .crops import above_zero, ordered, rectangle
from .draws import below, happens, pair_of, uniform
from .functional.filters import kernel_sizes


class GaussianBlur(nn.Module):
    """An image blurred: kernel_size odd, one or (x, y); sigma one or (low, high)."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        super().__init__()
        self.kernel_size = kernel_sizes(kernel_size)
        if isinstance(sigma, Number):
            if sigma <= 0:
                raise ValueError(
                    f"If sigma is a single number, it must be positive. Got {sigma}"
                )
            sigma = (sigma, sigma)
        low, high = pair_of(sigma, "sigma")
        if not 0.0 < low <= high:
            raise ValueError(
                "sigma values should be positive and of the form (min, max). Got "
                f"{sigma}"
            )
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min, sigma_max):
        """The sigma."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img):
        sigma = self.get_params(*self.sigma)
        return F.gaussian_blur(img, self.kernel_size, [sigma, sigma])

    def __repr__(self):
        return (
            f"{type(self).__name__}(kernel_size={self.kernel_size}, "
            f"sigma={self.sigma})"
        )


class RandomErasing(nn.Module):
    """A tensor [..., C, H, W] with a rectangle erased, at probability p.

    scale: the rectangle's share of the area; ratio: its height / width. value: a
    number, one for each channel, or "random" for normal values.
    """

    def __init__(
        self,
        p=0.5,
        scale=(0.02, 0.33),
        ratio=(0.3, 3.3),
        value: float = 0,
        inplace=False,
    ):
        super().__init__()
        if not isinstance(value, (Number, str, tuple, list)):
            raise TypeError(
                "Argument value should be either a number or str or a sequence. Got "
                f"{type(value)}"
            )
        if isinstance(value, str) and value != "random":
            raise ValueError(f"If value is str, it should be 'random'. Got {value!r}")
        ordered(pair_of(scale, "Scale"), "Scale")
        if scale[1] > 1:
            raise ValueError(f"Scale should be between 0 and 1. Got {scale}")
        if not 0 <= p <= 1:
            raise ValueError(
                f"Random erasing probability should be between 0 and 1. Got {p}"
            )
        self.p = p
        self.scale = scale
        self.ratio = above_zero(ratio, "Ratio")
        self.value = value
        self.inplace = inplace

    @staticmethod
    def get_params(img, scale, ratio, value=None):
        """(top, left, height, width, values), the whole image where none fits.

        value: a list of one number or one for each channel; None for normal values.
        """
        channels, height, width = F.get_dimensions(img)
        for _ in range(10):
            area = height * width * uniform(*scale)
            rows, columns = rectangle(area, ratio)
            if not (rows < height and columns < width):
                continue
            if value is None:
                shape = (channels, rows, columns)
                values = holdfast.empty(shape, device=img.device).normal_()
            else:
                values = holdfast.tensor(value, device=img.device).view(-1, 1, 1)
            top = below(height - rows + 1)
            left = below(width - columns + 1)
            return top, left, rows, columns, values
        return 0, 0, height, width, img

    def _values(self, img):
        if isinstance(self.value, str):
            return None
        if isinstance(self.value, Number):
            return [float(self.value)]
        values = [float(value) for value in self.value]
        channels = F.get_image_num_channels(img)
        if len(values) not in (1, channels):
            raise ValueError(
                "If value is a sequence, it should have either a single value or "
                f"{channels} (number of input channels). Got {len(values)}: {values}"
            )
        return values

    def forward(self, img):
        if not happens(self.p):
            return img
        place = self.get_params(img, self.scale, self.ratio, self._values(img))
        return F.erase(img, *place, self.inplace)

    def __repr__(self):
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, "
            f"ratio={self.ratio}, value={self.value}, inplace={self.inplace})"
        )
