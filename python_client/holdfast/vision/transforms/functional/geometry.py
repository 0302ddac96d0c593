# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sizes: resizing, padding, crops and flips."""

from numbers import Number

import numpy as np

import holdfast
from holdfast.nn import functional as F

from .images import (
    InterpolationMode,
    as_floats,
    get_dimensions,
    interpolation_mode,
    is_image,
    pair,
    pillow,
    pillow_number,
    pixels,
    restored,
    tensor_mode,
)

_NUMPY_MODES = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def resized_size(height, width, size, max_size=None):
    """(height, width) that `size` asks for: one number is the smaller edge's."""
    if isinstance(size, Number):
        size = [size]
    if not isinstance(size, (list, tuple)):
        raise TypeError(f"Size should be int or sequence. Got {type(size)}")
    if len(size) not in (1, 2):
        raise ValueError(
            f"Size must be an int or a 1 or 2 element tuple/list, not a {len(size)} "
            f"element tuple/list: {size}"
        )
    if len(size) == 2:
        if max_size is not None:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the "
                f"smaller edge. Got size={size}, max_size={max_size}"
            )
        return int(size[0]), int(size[1])
    short, long = sorted((height, width))
    new_short, new_long = int(size[0]), int(size[0] * long / short)
    if max_size is not None:
        if max_size <= size[0]:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested "
                f"size for the smaller edge size = {size[0]}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


def resize(
    img,
    size,
    interpolation=InterpolationMode.BILINEAR,
    max_size=None,
    antialias=None,
):
    """An image of another size: (h, w), or a number for the smaller edge.

    max_size limits the longer edge then. Pillow smooths where it shrinks; tensors
    do with antialias=True (bilinear and bicubic). Integers are rounded.
    """
    mode = interpolation_mode(interpolation)
    of_pillow = is_image(img)
    _, height, width = get_dimensions(img)
    new = resized_size(height, width, size, max_size)
    if min(new) < 1:
        raise ValueError(f"the resized image would be empty: {new} of size={size}")
    if new == (height, width):
        return img
    if of_pillow:
        return img.resize(new[::-1], pillow_number(mode))
    word = tensor_mode(mode)
    values, dtype = as_floats(img)
    values = values.reshape((-1, *_at_least_three(img)[-3:]))
    linear = word != "nearest"
    values = F.interpolate(
        values,
        size=new,
        mode=word,
        align_corners=False if linear else None,
        antialias=bool(antialias) and linear,
    )
    if word == "bicubic" and dtype == holdfast.uint8:
        values = values.clamp(0, 255)
    return restored(values.reshape((*img.shape[:-2], *new)), dtype)


def _at_least_three(img):
    return (1, *img.shape) if img.dim() == 2 else tuple(img.shape)


def sides(padding):
    """(left, top, right, bottom) of a number or a sequence of 1, 2 or 4."""
    if isinstance(padding, Number):
        padding = (padding,)
    if not isinstance(padding, (list, tuple)):
        raise TypeError(f"Got inappropriate padding arg: {type(padding)}")
    if len(padding) not in (1, 2, 4):
        raise ValueError(
            "Padding must be an int or a 1, 2, or 4 element tuple, not a "
            f"{len(padding)} element tuple: {padding}"
        )
    return tuple(int(n) for n in tuple(padding) * (4 // len(padding)))


def pad(img, padding, fill=0, padding_mode="constant"):
    """An image with more around it; a negative side is cut off.

    padding is one number, (left and right, top and bottom), or (left, top, right,
    bottom). Modes: constant (fill: a number, for Pillow also one for each channel),
    edge, reflect (without the edge), symmetric (with it).
    """
    left, top, right, bottom = sides(padding)
    if padding_mode != "constant" and padding_mode not in _NUMPY_MODES:
        raise ValueError(
            "Padding mode should be either constant, edge, reflect or symmetric. Got "
            f"{padding_mode!r}"
        )
    if not isinstance(fill, (Number, str, tuple, list)):
        raise TypeError(f"Got inappropriate fill arg: {type(fill)}")
    if is_image(img):
        return _padded_pillow(img, (left, top, right, bottom), fill, padding_mode)
    if padding_mode == "constant":
        if isinstance(fill, (tuple, list)):
            if len(fill) != 1:
                raise ValueError(
                    f"fill of a tensor is one number for all channels. Got {fill}"
                )
            (fill,) = fill
        return F.pad(img, [left, right, top, bottom], value=fill)
    rows = _source(img.shape[-2], top, bottom, padding_mode)
    columns = _source(img.shape[-1], left, right, padding_mode)
    rows, columns = (
        holdfast.as_tensor(places, device=img.device) for places in (rows, columns)
    )
    return img.index_select(-2, rows).index_select(-1, columns)


def _source(count, before, after, mode):
    """Where each of the padded places of an axis comes from."""
    kept = np.arange(max(-before, 0), count - max(-after, 0))
    if not kept.size:
        raise ValueError(f"padding {before}, {after} leaves nothing of {count}")
    return np.pad(kept, (max(before, 0), max(after, 0)), mode=_NUMPY_MODES[mode])


def fill_of_pillow(img, fill, name="fill"):
    """A fill value as Pillow wants it for the image's channels."""
    channels = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, Number):
        if img.mode == "F":
            return float(fill)
        return int(fill) if channels == 1 else (int(fill),) * channels
    if isinstance(fill, str):
        return fill
    if not isinstance(fill, (list, tuple)):
        raise TypeError(f"Got inappropriate {name} arg: {type(fill)}")
    if len(fill) == 1:
        return fill_of_pillow(img, fill[0])
    if len(fill) != channels:
        raise ValueError(
            f"The number of elements in '{name}' does not match the number of bands "
            f"of the image ({len(fill)} != {channels})"
        )
    return tuple(int(value) for value in fill)


def _padded_pillow(img, padding, fill, padding_mode):
    left, top, right, bottom = padding
    width, height = img.width + left + right, img.height + top + bottom
    if min(width, height) < 1:
        raise ValueError(f"padding {padding} leaves nothing of {img.size}")
    if padding_mode == "constant":
        canvas = pillow().new(img.mode, (width, height), fill_of_pillow(img, fill))
        if img.mode == "P" and img.palette is not None:
            canvas.putpalette(img.palette)
        canvas.paste(img, (left, top))
        return canvas
    array = pixels(img)
    array = array[_source(img.height, top, bottom, padding_mode)]
    array = array[:, _source(img.width, left, right, padding_mode)]
    padded = pillow().fromarray(array, mode=None if img.mode == "P" else img.mode)
    if img.mode == "P":
        padded.putpalette(img.getpalette())
    return padded


def crop(img, top, left, height, width):
    """The rectangle at (top, left); what lies outside of the image is zero."""
    if is_image(img):
        return img.crop((left, top, left + width, top + height))
    _, rows, columns = get_dimensions(img)
    bottom, right = top + height, left + width
    if left < 0 or top < 0 or right > columns or bottom > rows:
        inside = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
        before = min(max(-left, 0), width), min(max(-top, 0), height)
        right = width - inside.shape[-1] - before[0]
        bottom = height - inside.shape[-2] - before[1]
        return pad(inside, (*before, right, bottom))
    return img[..., top:bottom, left:right]


def center_crop(img, output_size):
    """The middle (h, w) of an image; a smaller image gets zeros around it first."""
    height, width = pair(output_size, "output_size")
    _, rows, columns = get_dimensions(img)
    more = max(width - columns, 0), max(height - rows, 0)
    if any(more):
        around = [n // 2 for n in more] + [(n + 1) // 2 for n in more]
        img = pad(img, around)
        _, rows, columns = get_dimensions(img)
        if (columns, rows) == (width, height):
            return img
    top, left = round((rows - height) / 2), round((columns - width) / 2)
    return crop(img, top, left, height, width)


def resized_crop(
    img,
    top,
    left,
    height,
    width,
    size,
    interpolation=InterpolationMode.BILINEAR,
    antialias=None,
):
    """crop(), then resize()."""
    part = crop(img, top, left, height, width)
    return resize(part, size, interpolation, antialias=antialias)


def hflip(img):
    """Left and right exchanged."""
    return img.transpose(0) if is_image(img) else img.flip(-1)


def vflip(img):
    """Top and bottom exchanged."""
    return img.transpose(1) if is_image(img) else img.flip(-2)


def five_crop(img, size):
    """The corners (top left, top right, bottom left, bottom right) and the centre.

    ValueError where size, a number or (h, w), is larger than the image.
    """
    height, width = pair(size, "size")
    _, rows, columns = get_dimensions(img)
    if width > columns or height > rows:
        raise ValueError(
            f"Requested crop size {(height, width)} is bigger than input size "
            f"{(rows, columns)}"
        )
    corners = [
        crop(img, top, left, height, width)
        for top in (0, rows - height)
        for left in (0, columns - width)
    ]
    return (*corners, center_crop(img, (height, width)))


def ten_crop(img, size, vertical_flip=False):
    """five_crop() of the image and of its mirror image."""
    mirrored = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(mirrored, size)
