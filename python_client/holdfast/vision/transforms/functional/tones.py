# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tones: inverted, coarser, stretched, made equally frequent, sharper."""

import holdfast
from holdfast.nn import functional as F

from .colors import blended, enhanced, largest, require_not_negative
from .images import as_floats, get_dimensions, is_image, require_channels, restored


def _require_image(img):
    """TypeError unless a tensor [..., C, H, W] of one or three channels."""
    if img.dim() < 3:
        raise TypeError(
            "Input image tensor should have at least 3 dimensions, but found "
            f"{img.dim()}"
        )
    require_channels(img, (1, 3))


def _require_bytes(img):
    _require_image(img)
    if img.dtype != holdfast.uint8:
        raise TypeError(
            f"Only uint8 image tensors are supported, but found {img.dtype}"
        )


def _pillows(name, img, *args):
    """Pillow's own function of that name."""
    from PIL import ImageOps

    return getattr(ImageOps, name)(img, *args)


def invert(img):
    """The negative of an image."""
    if is_image(img):
        return _pillows("invert", img)
    _require_image(img)
    return (1 if img.is_floating_point() else int(largest(img))) - img


def posterize(img, bits):
    """Only the first `bits` of the 8 bits of each value; tensors: of uint8."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number of bits should be between 0 and 8. Got {bits}")
    if is_image(img):
        return _pillows("posterize", img, bits)
    _require_bytes(img)
    return img & (256 - 2 ** (8 - int(bits)))


def solarize(img, threshold):
    """An image with the values from the threshold on inverted."""
    if is_image(img):
        return _pillows("solarize", img, threshold)
    _require_image(img)
    if threshold > largest(img):
        raise TypeError(
            f"Threshold should be less than bound of img, {largest(img)}. Got "
            f"{threshold}"
        )
    return holdfast.where(img >= threshold, invert(img), img)


def autocontrast(img):
    """An image whose channels each reach from 0 to the largest value there is."""
    if is_image(img):
        return _pillows("autocontrast", img)
    _require_image(img)
    values, dtype = as_floats(img)
    low = values.amin((-2, -1), keepdim=True)
    spread = values.amax((-2, -1), keepdim=True) - low
    scale = largest(img) / holdfast.where(spread > 0, spread, 1.0)
    stretched = ((values - low) * scale).clamp(0, largest(img)).to(dtype)
    # A channel of one value stays.
    return holdfast.where(spread > 0, stretched, img)


def equalize(img):
    """An image whose channels each have all values about equally often; tensors: of
    uint8."""
    if is_image(img):
        return _pillows("equalize", img)
    _require_bytes(img)
    channels = img.reshape(-1, img.shape[-2] * img.shape[-1]).to(holdfast.int64)
    ones = holdfast.ones_like(channels)
    counts = ones.new_zeros(len(channels), 256).scatter_add(1, channels, ones)
    brightest = counts.gather(1, channels.amax(1, keepdim=True))
    # How many pixels get one value: those of the brightest do not count.
    step = (channels.shape[1] - brightest) // 255
    below = counts.cumsum(1) - counts
    table = ((below + step // 2) // step.clamp(min=1)).clamp(max=255)
    table = holdfast.where(step > 0, table, holdfast.arange(256, device=img.device))
    return table.gather(1, channels).to(img.dtype).reshape(tuple(img.shape))


def adjust_sharpness(img, sharpness_factor):
    """0 gives a blurred image, 1 the image itself, 2 one twice as sharp.

    Its outermost pixels stay. Tensors of two rows or columns, or fewer, stay.
    """
    require_not_negative("sharpness_factor", sharpness_factor)
    if is_image(img):
        return enhanced(img, "Sharpness", sharpness_factor)
    _require_image(img)
    channels, height, width = get_dimensions(img)
    if min(height, width) <= 2:
        return img
    values, dtype = as_floats(img)
    values = values.reshape(-1, channels, height, width)
    kernel = holdfast.ones(3, 3, dtype=values.dtype, device=img.device)
    kernel[1, 1] = 5.0
    kernel = (kernel / 13.0).expand(channels, 1, 3, 3)
    smooth = restored(F.conv2d(values, kernel, groups=channels), dtype)
    blurred = img.clone()
    inside = blurred[..., 1:-1, 1:-1]
    inside.copy_(smooth.reshape(tuple(inside.shape)))
    return blended(img, blurred, sharpness_factor)
