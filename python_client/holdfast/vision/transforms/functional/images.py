# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Images: Pillow's, or tensors [..., C, H, W]; what kind one is, and its size.

Pillow is asked for only where an image must be made: what is not imported yet has
made no image that could come in.
"""

import enum
import sys
from numbers import Number

import numpy as np

import holdfast


class InterpolationMode(enum.Enum):
    """How values between pixels are found. Tensors know the first three."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PILLOW_MODES = {
    InterpolationMode.NEAREST: 0,
    InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2,
    InterpolationMode.BICUBIC: 3,
    InterpolationMode.BOX: 4,
    InterpolationMode.HAMMING: 5,
}
_OF_NUMBER = {number: mode for mode, number in _PILLOW_MODES.items()}
_OF_TENSORS = tuple(InterpolationMode)[:3]


def interpolation_mode(value):
    """The mode of an InterpolationMode or of Pillow's number for one."""
    if isinstance(value, InterpolationMode):
        return value
    try:
        return _OF_NUMBER[value]
    except (KeyError, TypeError):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or one of Pillow's "
            f"numbers {sorted(_OF_NUMBER)}. Got {value!r}"
        ) from None


def pillow_number(mode):
    """Pillow's number of an InterpolationMode."""
    return _PILLOW_MODES[mode]


def tensor_mode(mode, allowed=_OF_TENSORS):
    """nn.functional's word for an InterpolationMode; ValueError if it has none."""
    if mode not in allowed:
        raise ValueError(
            f"This interpolation mode ({mode.value}) is unsupported with Tensor input: "
            f"use one of {[other.value for other in allowed]}"
        )
    return mode.value


def pillow():
    """The module PIL.Image; ImportError that says what to install."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "Images need Pillow, which is not installed: pip install pillow, or "
            "Debian's python3-pil"
        ) from error
    return Image


def is_pillow(image):
    """Whether it is a PIL.Image.Image."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(image, module.Image)


def is_image(image):
    """Whether an image of Pillow (True) or a tensor (False); TypeError otherwise."""
    if isinstance(image, holdfast.Tensor):
        if image.dim() < 2:
            raise TypeError(
                "Tensor is not a torch image: it needs dimensions [..., H, W]. Got "
                f"shape {tuple(image.shape)}"
            )
        return False
    if is_pillow(image):
        return True
    raise TypeError(f"img should be PIL Image or Tensor. Got {type(image)}")


def get_dimensions(img):
    """[channels, height, width] of an image."""
    if is_image(img):
        return [len(img.getbands()), img.height, img.width]
    channels = 1 if img.dim() == 2 else img.shape[-3]
    return [channels, img.shape[-2], img.shape[-1]]


def get_image_size(img):
    """[width, height] of an image."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img):
    """How many channels an image has."""
    return get_dimensions(img)[0]


def require_channels(img, allowed):
    """The channels of a tensor image; TypeError unless among those allowed."""
    channels = get_dimensions(img)[0]
    if channels not in allowed:
        raise TypeError(
            f"Input image tensor permitted channel values are {list(allowed)}, but "
            f"found {channels}"
        )
    return channels


def pixels(image):
    """A copy of a Pillow image's pixels as an array [H, W] or [H, W, C]."""
    return np.array(image)


def pair(size, name):
    """(height, width) of a number or a sequence of one or two."""
    if isinstance(size, Number):
        return int(size), int(size)
    if isinstance(size, (list, tuple)):
        if len(size) == 1:
            return int(size[0]), int(size[0])
        if len(size) == 2:
            return int(size[0]), int(size[1])
        raise ValueError(
            f"Please provide one or two dimensions (h, w) for {name}. Got {size}"
        )
    raise TypeError(f"{name} should be int or sequence of int. Got {type(size)}")


def as_floats(img):
    """(tensor as floats, its own dtype): the arithmetic of integer images."""
    if img.is_floating_point():
        return img, img.dtype
    return img.to(holdfast.float32), img.dtype


def restored(img, dtype):
    """Floats back in the image's dtype, integers rounded to nearest."""
    if img.dtype == dtype:
        return img
    if not dtype.is_floating_point:
        img = img.round()
    return img.to(dtype)
