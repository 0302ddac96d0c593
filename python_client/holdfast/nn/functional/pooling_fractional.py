# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Fractional max pooling (Graham 2014): windows at random steps."""

import math

from holdfast import _C

from .pooling import check_rank
from .sizes import shape_text, spread

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

_ops = _C.ops


def _starts(samples, size, kernel, out):
    """Where the windows of one axis start: [N, C] samples to [N, C, out]."""
    steps = _ops.arange(0, out, 1, dtype=samples.dtype)
    alpha = (size - kernel) / (out - 1) if out > 1 else 0.0
    sample = samples.unsqueeze(-1)
    starts = ((steps + sample) * alpha).long() - (sample * alpha).long()
    return _ops.where(_ops.eq(steps, out - 1), size - kernel, starts)


def _output_size(name, axes, input, output_size, output_ratio):
    if output_size is None and output_ratio is None:
        raise ValueError(
            f"{name} requires specifying either an output_size or an output_ratio"
        )
    if output_size is not None:
        return spread(output_size, axes)
    ratios = output_ratio
    if not isinstance(ratios, (tuple, list)):
        ratios = (ratios,) * axes
    return tuple(int(n * r) for n, r in zip(input.shape[-axes:], ratios))


def _pool(axes, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{axes}d"
    check_rank(name, input, axes)
    if input.dim() == axes + 1:
        args = (kernel_size, output_size, output_ratio, samples)
        both = _pool(axes, input.unsqueeze(0), *args)
        return tuple(x.squeeze(0) for x in both)
    kernel = spread(kernel_size, axes)
    out = _output_size(name, axes, input, output_size, output_ratio)
    n, c, *sizes = input.shape
    if any(o < 1 or o + k - 1 > s for o, k, s in zip(out, kernel, sizes)):
        raise RuntimeError(
            f"[{name}] kernel_size {kernel} and output size {out} do not fit the "
            f"input {shape_text(input)}"
        )
    if samples is None:
        samples = _ops.rand((n, c, axes), dtype=input.dtype)
    index = None
    for i, size in enumerate(sizes):
        # As in PyTorch, whose two-dimensional samples have the width first.
        column = samples[..., axes - 1 - i if axes == 2 else i]
        shape = [n, c] + [1] * (2 * axes)
        shape[2 + i] = out[i]
        place = _starts(column, size, kernel[i], out[i]).reshape(shape)
        shape = [1] * (2 * axes)
        shape[axes + i] = kernel[i]
        place = place + _ops.arange(0, kernel[i]).reshape(shape)
        index = place if index is None else index * size + place
    taps = math.prod(kernel)
    index = index.reshape(n, c, math.prod(out) * taps)
    flat = input.reshape(n, c, math.prod(sizes))
    values = _ops.gather(flat, 2, index).reshape(n, c, *out, taps)
    best = _ops.argmax(values, -1, True)
    index = _ops.gather(index.reshape(n, c, *out, taps), -1, best)
    return _ops.gather(values, -1, best).squeeze(-1), index.squeeze(-1)


def fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Largest elements of output_size windows at random steps, and their int64
    positions in the H*W plane."""
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Largest elements of output_size windows at random steps, and their int64
    positions in D*H*W."""
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Largest elements of windows of [N, C, H, W] or [C, H, W] at random steps.

    As many as output_size, or output_ratio of the input's sizes.
    """
    both = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]


def fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
):
    """Largest elements of windows of [N, C, D, H, W] at random steps.

    As many as output_size, or output_ratio of the input's sizes.
    """
    both = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return both if return_indices else both[0]
