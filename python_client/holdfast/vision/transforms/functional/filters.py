# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Blurring, and erasing a rectangle."""

from numbers import Number

import numpy as np

import holdfast
from holdfast.nn import functional as F

from .images import as_floats, is_image, pillow, pixels, restored


def kernel_sizes(kernel_size):
    """(x, y) of a kernel size; TypeError, ValueError for what is not odd."""
    if isinstance(kernel_size, Number):
        kernel_size = [kernel_size, kernel_size]
    if not isinstance(kernel_size, (list, tuple)):
        raise TypeError(
            "kernel_size should be int or a sequence of integers. Got "
            f"{type(kernel_size)}"
        )
    if len(kernel_size) != 2:
        raise ValueError(
            "If kernel_size is a sequence its length should be 2. Got "
            f"{len(kernel_size)}: {kernel_size}"
        )
    for size in kernel_size:
        if size % 2 == 0 or size < 1:
            raise ValueError(
                "kernel_size should have odd and positive integers. Got "
                f"{tuple(kernel_size)}"
            )
    return tuple(kernel_size)


def _sigmas(sigma, sizes):
    if sigma is None:
        return tuple(size * 0.15 + 0.35 for size in sizes)
    if isinstance(sigma, Number):
        sigma = (sigma,)
    if not isinstance(sigma, (list, tuple)):
        raise TypeError(
            f"sigma should be either float or sequence of floats. Got {type(sigma)}"
        )
    if len(sigma) not in (1, 2):
        raise ValueError(
            "If sigma is a sequence, its length should be 2. Got "
            f"{len(sigma)}: {sigma}"
        )
    if min(sigma) <= 0:
        raise ValueError(f"sigma should have positive values. Got {tuple(sigma)}")
    return tuple(sigma) * (3 - len(sigma))


def _weights(size, sigma):
    """The bell curve at `size` pixels around its middle, of sum 1."""
    x = np.arange(size) - (size - 1) / 2
    density = np.exp(-0.5 * (x / sigma) ** 2)
    return density / density.sum()


def gaussian_blur(img, kernel_size, sigma=None):
    """An image blurred by a Gaussian; beyond its edges it is mirrored.

    kernel_size: odd, one number or (x, y). sigma: one, (x, y), or None for
    0.15 * kernel_size + 0.35. Integers are rounded.
    """
    sizes = kernel_sizes(kernel_size)
    sigmas = _sigmas(sigma, sizes)
    of_pillow = is_image(img)
    height, width = (img.height, img.width) if of_pillow else img.shape[-2:]
    if sizes[0] // 2 >= width or sizes[1] // 2 >= height:
        raise ValueError(
            f"kernel_size {sizes} reaches beyond the mirrored image of "
            f"{(width, height)}"
        )
    weights = [_weights(*of_axis) for of_axis in zip(sizes, sigmas)]
    if of_pillow:
        return _blurred_pillow(img, *weights)
    kernel = weights[1][:, None] * weights[0][None, :]
    values, dtype = as_floats(img)
    channels = img.shape[-3] if img.dim() > 2 else 1
    values = values.reshape((-1, channels, height, width))
    kernel = holdfast.as_tensor(kernel, dtype=values.dtype, device=img.device)
    kernel = kernel.expand(channels, 1, *kernel.shape)
    x, y = sizes[0] // 2, sizes[1] // 2
    values = F.pad(values, [x, x, y, y], mode="reflect")
    values = F.conv2d(values, kernel, groups=channels)
    return restored(values.reshape(tuple(img.shape)), dtype)


def _blurred_pillow(img, weights_x, weights_y):
    array = pixels(img)
    values = array.astype(np.float64)
    for axis, weights in ((1, weights_x), (0, weights_y)):
        values = _blurred_along(values, weights, axis)
    if array.dtype.kind in "iu":
        values = values.round()
    return pillow().fromarray(values.astype(array.dtype), img.mode)


def _blurred_along(values, weights, axis):
    count, reach = values.shape[axis], len(weights) // 2
    around = [(0, 0)] * values.ndim
    around[axis] = (reach, reach)
    padded = np.pad(values, around, mode="reflect")
    windows = (
        padded.take(range(start, start + count), axis) for start in range(len(weights))
    )
    return sum(weight * window for weight, window in zip(weights, windows))


def erase(img, i, j, h, w, v, inplace=False):
    """A tensor [..., C, H, W] with `v` in the rectangle [i:i+h, j:j+w].

    v is a number or a tensor that broadcasts to [..., C, h, w]. TypeError for what
    is no tensor.
    """
    if not isinstance(img, holdfast.Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    if not inplace:
        img = img.clone()
    img[..., i : i + h, j : j + w] = v
    return img
