# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Colours: brightness, contrast, saturation, hue, gamma, grey."""

import numpy as np

import holdfast

from .conversion import convert_image_dtype
from .images import is_image, pillow, require_channels

_GREY = (0.2989, 0.587, 0.114)  # of red, green and blue (ITU-R 601-2)


def require_not_negative(name, value):
    """ValueError for a number below 0."""
    if value < 0:
        raise ValueError(f"{name} ({value}) is not non-negative.")


def largest(img):
    """The largest value of an image of the tensor's type."""
    return 1.0 if img.is_floating_point() else float(holdfast.iinfo(img.dtype).max)


def blended(img, other, factor):
    """factor * img + (1 - factor) * other, kept in the image's range."""
    mixed = factor * img + (1.0 - factor) * other
    return mixed.clamp(0, largest(img)).to(img.dtype)


def enhanced(img, kind, factor):
    """An image of Pillow changed by its ImageEnhance.<kind>."""
    pillow()
    from PIL import ImageEnhance

    return getattr(ImageEnhance, kind)(img).enhance(factor)


def adjust_brightness(img, brightness_factor):
    """0 gives a black image, 1 the image itself, 2 one twice as bright."""
    require_not_negative("brightness_factor", brightness_factor)
    if is_image(img):
        return enhanced(img, "Brightness", brightness_factor)
    require_channels(img, (1, 3))
    mixed = img * float(brightness_factor)
    return mixed.clamp(0, largest(img)).to(img.dtype)


def adjust_contrast(img, contrast_factor):
    """0 gives a grey image, 1 the image itself, 2 twice its contrast."""
    require_not_negative("contrast_factor", contrast_factor)
    if is_image(img):
        return enhanced(img, "Contrast", contrast_factor)
    channels = require_channels(img, (1, 3))
    grey = rgb_to_grayscale(img) if channels == 3 else img
    if not grey.is_floating_point():
        grey = grey.to(holdfast.float32)
    axes = (-3, -2, -1) if img.dim() > 2 else (-2, -1)
    return blended(img, grey.mean(axes, keepdim=True), contrast_factor)


def adjust_saturation(img, saturation_factor):
    """0 gives a black and white image, 1 the image itself, 2 twice its saturation."""
    require_not_negative("saturation_factor", saturation_factor)
    if is_image(img):
        return enhanced(img, "Color", saturation_factor)
    if require_channels(img, (1, 3)) == 1:
        return img
    return blended(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img, hue_factor):
    """The hue turned by hue_factor of a full circle, from -0.5 to 0.5.

    Grey images stay as they are.
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if is_image(img):
        if img.mode in ("L", "1", "I", "F"):
            return img
        hue, saturation, value = img.convert("HSV").split()
        # Bytes go round by themselves.
        turned = np.array(hue) + np.uint8(int(hue_factor * 255) % 256)
        hue = pillow().fromarray(turned, "L")
        merged = pillow().merge("HSV", (hue, saturation, value))
        return merged.convert(img.mode)
    if require_channels(img, (1, 3)) == 1:
        return img
    values = img
    if not img.is_floating_point():
        values = convert_image_dtype(img, holdfast.float32)
    hue, saturation, value = _hsv(values)
    turned = _rgb((hue + hue_factor) % 1.0, saturation, value)
    return convert_image_dtype(turned, img.dtype)


def _hsv(rgb):
    """Hue, saturation and value, each [..., H, W] of [0, 1]."""
    red, green, blue = rgb.unbind(-3)
    value = rgb.amax(-3)
    spread = value - rgb.amin(-3)
    grey = spread == 0
    safe = holdfast.where(grey, holdfast.ones_like(spread), spread)
    saturation = spread / holdfast.where(grey, holdfast.ones_like(value), value)
    # Which sixth of the circle: from the largest colour, red first.
    hue = holdfast.where(
        value == green, 2.0 + (blue - red) / safe, (red - green) / safe + 4.0
    )
    hue = holdfast.where(value == red, (green - blue) / safe, hue)
    return (hue / 6.0 + 1.0) % 1.0, saturation, value


def _rgb(hue, saturation, value):
    """[..., 3, H, W] of hue, saturation and value."""
    # One formula for the three: how far the hue is from each colour's side.
    colours = []
    for offset in (5.0, 3.0, 1.0):
        k = (hue * 6.0 + offset) % 6.0
        near = holdfast.minimum(k, 4.0 - k).clamp(0.0, 1.0)
        colours.append(value - value * saturation * near)
    return holdfast.stack(colours, -3).clamp(0.0, 1.0)


def adjust_gamma(img, gamma, gain: float = 1):
    """gain * img ** gamma, for values of [0, 1] (bytes are taken as such)."""
    if gamma < 0:
        raise ValueError(f"Gamma should be a non-negative real number. Got {gamma}")
    if is_image(img):
        levels = np.arange(256) / 255.0
        table = ((255 + 1 - 1e-3) * gain * levels**gamma).astype(int)
        rgb = img.convert("RGB").point(table.tolist() * 3)
        return rgb.convert(img.mode)
    require_channels(img, (1, 3))
    values = img
    if not img.is_floating_point():
        values = convert_image_dtype(img, holdfast.float32)
    values = (gain * values**gamma).clamp(0, 1)
    return convert_image_dtype(values, img.dtype)


def rgb_to_grayscale(img, num_output_channels=1):
    """An image in grey, of one channel or three equal ones."""
    if num_output_channels not in (1, 3):
        raise ValueError(
            f"num_output_channels should be either 1 or 3. Got {num_output_channels}"
        )
    if is_image(img):
        grey = img.convert("L")
        return grey if num_output_channels == 1 else grey.convert("RGB")
    if img.dim() < 3:
        raise TypeError(
            "Input image tensor should have at least 3 dimensions, but found "
            f"{img.dim()}"
        )
    if require_channels(img, (1, 3)) == 3:
        red, green, blue = img.unbind(-3)
        grey = _GREY[0] * red + _GREY[1] * green + _GREY[2] * blue
        grey = grey.to(img.dtype).unsqueeze(-3)
    else:
        grey = img.clone()
    if num_output_channels == 3:
        return grey.expand((*img.shape[:-3], 3, *img.shape[-2:]))
    return grey


def to_grayscale(img, num_output_channels=1):
    """rgb_to_grayscale() for images of Pillow; TypeError for others."""
    if not is_image(img):
        raise TypeError(f"Input should be PIL Image. Got {type(img)}")
    return rgb_to_grayscale(img, num_output_channels)
