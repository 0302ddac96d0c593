# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sampling at positions that a tensor gives: affine_grid() and grid_sample()."""

import math
import warnings

import numpy as np

from holdfast import _C

from .sizes import shape_text

__all__ = ["affine_grid", "grid_sample"]

_ops = _C.ops

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _positions(n, align_corners):
    """The centres of n pixels from -1 to 1, or from edge to edge."""
    if n == 1:
        return np.zeros(1)
    line = np.linspace(-1.0, 1.0, n)
    return line if align_corners else line * ((n - 1) / n)


def affine_grid(theta, size, align_corners=None):
    """Positions for grid_sample() of an affine map.

    theta [N, 2, 3], size (N, C, H, W) -> [N, H, W, 2]; theta [N, 3, 4], size
    (N, C, D, H, W) -> [N, D, H, W, 3].
    """
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {tuple(size)}."
        )
    if not theta.is_floating_point():
        raise ValueError(
            f"Expected theta to have floating point type, but got {theta.dtype}"
        )
    if tuple(theta.shape) != (size[0], axes, axes + 1):
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape "
            f"{size[0]}x{axes}x{axes + 1} for size {tuple(size)}. Got "
            f"{shape_text(theta)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    lines = [_positions(n, bool(align_corners)) for n in size[2:]]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]  # x before y
    base = np.stack([*mesh, np.ones_like(mesh[0])], -1).reshape(-1, axes + 1)
    base = _C.as_tensor(base, dtype=theta.dtype, device=theta.device)
    return base.matmul(theta.transpose(1, 2)).reshape(size[0], *size[2:], axes)


def _reflect(x, low, high):
    """x reflected until it lies between low / 2 and high / 2."""
    span = (high - low) / 2
    if span <= 0:
        return x * 0
    away = (x - low / 2).abs()
    turns = (away / span).floor().detach()
    rest = away - turns * span
    return _ops.where(turns % 2 == 0, rest, span - rest) + low / 2


def _into(x, size, padding_mode, align_corners):
    """Positions as the padding mode moves them."""
    if padding_mode == "reflection":
        low, high = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
        x = _reflect(x, low, high)
    if padding_mode != "zeros":
        x = x.clamp(0, size - 1)
    return x


def _taps(x, mode):
    """[(position, weight), ...] along one axis; positions are whole."""
    if mode == "nearest":
        return [(x.round().detach(), None)]
    low = x.floor().detach()
    t = x - low
    if mode == "bilinear":
        return [(low, 1 - t), (low + 1, t)]
    a = -0.75

    def near(t):
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t):
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    return [(low + (i - 1), w) for i, w in enumerate(weights)]


def _check(input, grid, mode, padding_mode):
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
            f"or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
            f"'border', or 'reflection', but got: '{padding_mode}'"
        )
    axes = input.dim() - 2
    if axes not in (2, 3) or grid.dim() != input.dim():
        raise RuntimeError(
            "[grid_sample] expected 4D or 5D input and grid with same number of "
            f"dimensions, but got input with sizes {shape_text(input)} and grid "
            f"with sizes {shape_text(grid)}"
        )
    if grid.shape[0] != input.shape[0] or grid.shape[-1] != axes:
        raise RuntimeError(
            "[grid_sample] expected grid and input to have same batch size and "
            f"grid to have size {axes} in last dimension, but got input with sizes "
            f"{shape_text(input)} and grid with sizes {shape_text(grid)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "[grid_sample] expected input to have non-empty spatial dimensions, but "
            f"input has sizes {shape_text(input)}"
        )
    if grid.dtype != input.dtype:
        raise RuntimeError(
            "[grid_sample] expected input and grid to have same dtype, but input "
            f"has {input.dtype} and grid has {grid.dtype}"
        )


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """input's values at the positions in grid, which run from -1 to 1.

    input [N, C, H, W], grid [N, OH, OW, 2] (x, y) -> [N, C, OH, OW], or with D
    before H and positions (x, y, z). Modes: "bilinear", "nearest", "bicubic". Outside
    the input are "zeros", what is at the "border", or the input's "reflection".
    """
    _check(input, grid, mode, padding_mode)
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to "
            "align_corners=False. Please specify align_corners=True if the old "
            "behavior is desired."
        )
        align_corners = False
    n, c, *sizes = input.shape
    out = tuple(grid.shape[1:-1])
    points = grid.reshape(n, math.prod(out), len(sizes))
    needs_gradient = grid.requires_grad and _C.is_grad_enabled()
    if mode == "bicubic" or needs_gradient:
        index, weight = _taps_of(points, sizes, mode, padding_mode, align_corners)
    else:
        index, weight = _ops.grid_taps(
            points, sizes, mode, padding_mode, bool(align_corners)
        )
    planes = input.reshape(n, c, math.prod(sizes))
    result = _ops.weighted_gather(planes, index, weight).reshape(n, c, *out)
    node = f"GridSampler{len(sizes)}DBackward0"
    return _C.show_as(result, node, input, grid)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sample() with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0
    zeros, 1 border, 2 reflection."""
    for name, modes, number in (
        ("interpolation_mode", _MODES, interpolation_mode),
        ("padding_mode", _PADDINGS, padding_mode),
    ):
        if not 0 <= number < len(modes):
            raise RuntimeError(f"grid_sampler(): no {name} {number}; there are {modes}")
    own = _MODES[interpolation_mode], _PADDINGS[padding_mode]
    return grid_sample(input, grid, *own, bool(align_corners))


def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler() of planes [N, C, H, W]."""
    return _sampled(2, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler() of volumes [N, C, D, H, W]."""
    return _sampled(3, input, grid, interpolation_mode, padding_mode, align_corners)


def _sampled(axes, input, *rest):
    if input.dim() != axes + 2:
        raise RuntimeError(
            f"grid_sampler_{axes}d(): input must have {axes + 2} dimensions. Got "
            f"{shape_text(input)}."
        )
    return grid_sampler(input, *rest)


def _taps_of(points, sizes, mode, padding_mode, align_corners):
    """Indices and weights [N, K, P], as grid_taps makes them, out of ops that have
    gradients."""
    axes = []
    for i, size in enumerate(sizes):
        x = points[..., len(sizes) - 1 - i]
        x = (x + 1) * ((size - 1) / 2 if align_corners else size / 2)
        x = x if align_corners else x - 0.5
        if mode != "bicubic":  # which moves its taps instead
            x = _into(x, size, padding_mode, align_corners)
        axes.append(
            [
                (_place(at, size, sizes, mode, padding_mode, align_corners), weight)
                for at, weight in _taps(x, mode)
            ]
        )
    indices, weights = _corners(axes, sizes)
    if mode == "nearest":
        weights = [_ops.full(tuple(points.shape[:2]), 1, dtype=points.dtype)]
    return _stack(indices), _stack(weights)


def _stack(tensors):
    """[N, P] each, as [N, K, P]."""
    return _ops.cat([t.unsqueeze(1) for t in tensors], 1)


def _place(at, size, sizes, mode, padding_mode, align_corners):
    """Whole positions as int64; so far below zero when outside that every index
    made of them is negative, which weighted_gather passes over."""
    if padding_mode == "zeros":
        within = _ops.logical_and(at >= 0, at <= size - 1)
        return _ops.where(within, at.long(), -math.prod(sizes))
    if mode == "bicubic":
        at = _into(at, size, padding_mode, align_corners)
    # One tap may lie beyond the edge, with weight 0; and NaN may be anywhere.
    return at.long().clamp(0, size - 1)


def _corners(axes, sizes):
    """Indices and weights of all combinations of the axes' taps."""
    pairs = axes[0]
    for taps, size in zip(axes[1:], sizes[1:]):
        pairs = [
            (row + at, w if v is None else w * v)
            for row, w in [(index * size, w) for index, w in pairs]
            for at, v in taps
        ]
    return [index for index, _ in pairs], [w for _, w in pairs]
