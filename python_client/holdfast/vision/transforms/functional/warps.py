# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rotations and affine maps."""

import math
from numbers import Number

import numpy as np

import holdfast
from holdfast.nn import functional as F

from .geometry import fill_of_pillow
from .images import (
    InterpolationMode,
    as_floats,
    interpolation_mode,
    is_image,
    pillow_number,
    restored,
    tensor_mode,
)

_OF_WARPS = (InterpolationMode.NEAREST, InterpolationMode.BILINEAR)


def inverse_matrix(center, angle, translate, scale, shear):
    """[2, 3]: where each pixel of the result comes from.

    The map itself shears, turns by angle (degrees, clockwise as the y axis points
    down) and scales around the centre, then translates.
    """
    turn, shear_x, shear_y = (math.radians(a) for a in (angle, *shear))
    # Rotation times both shears has determinant 1.
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    b = -a * math.tan(shear_x) - math.sin(turn)
    d = -c * math.tan(shear_x) + math.cos(turn)
    linear = np.array([[d, -b], [-c, a]]) / scale
    centre = np.array(center, dtype=float)
    shift = centre - linear @ (centre + np.array(translate, dtype=float))
    return np.concatenate([linear, shift[:, None]], axis=1)


def _sampled(img, matrix, size, mode, fill):
    """The tensor image seen through the matrix (relative to the centres), (h, w)."""
    word = tensor_mode(mode, _OF_WARPS)
    height, width = img.shape[-2:]
    values, dtype = as_floats(img)
    batch = (-1, img.shape[-3] if img.dim() > 2 else 1, height, width)
    values = values.reshape(batch)
    if fill is not None:
        values = holdfast.cat([values, holdfast.ones_like(values[:, :1])], 1)
    grid = _grid(matrix, size, (height, width))
    grid = holdfast.as_tensor(grid, dtype=values.dtype, device=img.device)
    grid = grid.expand(values.shape[0], -1, -1, -1)
    values = F.grid_sample(
        values, grid, mode=word, padding_mode="zeros", align_corners=False
    )
    if fill is not None:
        inside, values = values[:, -1:], values[:, :-1]
        fill = _fill_of_tensor(fill, values)
        if word == "nearest":
            values = holdfast.where(inside < 0.5, fill, values)
        else:
            values = values * inside + (1.0 - inside) * fill
    return restored(values.reshape((*img.shape[:-2], *size)), dtype)


def _grid(matrix, size, source):
    """Places [1, h, w, 2] to sample at, (x, y), -1 to 1 from edge to edge."""
    rows, columns = (np.arange(n) - (n - 1) / 2 for n in size)
    x, y = columns[None, :], rows[:, None]
    places = np.stack([m[0] * x + m[1] * y + m[2] for m in matrix], axis=-1)
    half = np.array([source[1], source[0]]) / 2
    return (places / half)[None].astype(np.float32)


def _fill_of_tensor(fill, values):
    channels = values.shape[1]
    fill = [fill] if isinstance(fill, Number) else list(fill)
    if len(fill) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of "
            f"channels of the image ({len(fill)} != {channels})"
        )
    fill = holdfast.tensor(fill, dtype=values.dtype, device=values.device)
    return fill.view(1, -1, 1, 1)


def _require_point(center):
    if not isinstance(center, (list, tuple)):
        raise TypeError(f"Argument center should be a sequence. Got {type(center)}")
    if len(center) != 2:
        raise ValueError(f"center should be (x, y), a sequence of length 2: {center}")


def _from_middle(center, img):
    """A centre (x, y) counted from the image's middle."""
    if center is None:
        return 0.0, 0.0
    return center[0] - img.shape[-1] / 2, center[1] - img.shape[-2] / 2


def _expanded_size(matrix, size):
    """(h, w) that holds all of an image (h, w) turned by the matrix."""
    height, width = size
    corners = np.array([[x, y] for x in (-0.5, 0.5) for y in (-0.5, 0.5)])
    corners = (corners * (width, height)) @ matrix[:, :2].T + matrix[:, 2]
    corners += np.array([width, height]) / 2
    # What is off by rounding alone takes no further pixel.
    low = np.floor(np.round(corners.min(0), 4))
    high = np.ceil(np.round(corners.max(0), 4))
    columns, rows = (high - low).astype(int)
    return int(rows), int(columns)


def rotate(
    img,
    angle,
    interpolation=InterpolationMode.NEAREST,
    expand=False,
    center=None,
    fill=None,
):
    """An image turned by `angle` degrees, counter-clockwise.

    expand=True makes the result as large as it takes. center is (x, y) from the top
    left corner, the middle where None. fill: a number, or one for each channel,
    outside of the image (0 where None). Tensors: nearest and bilinear.
    """
    mode = interpolation_mode(interpolation)
    if not isinstance(angle, Number):
        raise TypeError(f"Argument angle should be int or float. Got {type(angle)}")
    if center is not None:
        _require_point(center)
    if is_image(img):
        color = fill_of_pillow(img, fill)
        return img.rotate(
            angle, pillow_number(mode), bool(expand), center, fillcolor=color
        )
    middle = _from_middle(center, img)
    matrix = inverse_matrix(middle, -angle, (0, 0), 1.0, (0, 0))
    size = tuple(img.shape[-2:])
    if expand:
        size = _expanded_size(matrix, size)
    return _sampled(img, matrix, size, mode, fill)


def _both_shears(shear):
    if isinstance(shear, Number):
        return [shear, 0.0]
    if not isinstance(shear, (list, tuple)):
        raise TypeError(
            f"Shear should be either a single value or a sequence. Got {shear}"
        )
    if len(shear) not in (1, 2):
        raise ValueError(f"Shear should be one or two values. Got {shear}")
    return list(shear) * (3 - len(shear))


def affine(
    img,
    angle,
    translate,
    scale,
    shear,
    interpolation=InterpolationMode.NEAREST,
    fill=None,
    center=None,
):
    """An image sheared, turned clockwise, scaled around `center` and shifted.

    angle and shear (one along x, or x and y) in degrees, translate (x, y) in pixels,
    scale above 0; center, fill and interpolation as for rotate(). The size stays.
    """
    mode = interpolation_mode(interpolation)
    if not isinstance(angle, Number):
        raise TypeError(f"Argument angle should be int or float. Got {type(angle)}")
    if not isinstance(translate, (list, tuple)):
        raise TypeError(
            f"Argument translate should be a sequence. Got {type(translate)}"
        )
    if len(translate) != 2:
        raise ValueError(
            f"Argument translate should be a sequence of length 2. Got {translate}"
        )
    if not scale > 0:
        raise ValueError(f"Argument scale should be positive. Got {scale}")
    shear = _both_shears(shear)
    if center is not None:
        _require_point(center)
    if is_image(img):
        middle = (img.width / 2, img.height / 2) if center is None else center
        matrix = inverse_matrix(middle, angle, translate, scale, shear)
        return img.transform(
            img.size,
            0,  # Pillow's number of an affine map
            tuple(matrix.reshape(-1)),
            pillow_number(mode),
            fillcolor=fill_of_pillow(img, fill),
        )
    middle = _from_middle(center, img)
    matrix = inverse_matrix(middle, angle, translate, scale, shear)
    return _sampled(img, matrix, tuple(img.shape[-2:]), mode, fill)
