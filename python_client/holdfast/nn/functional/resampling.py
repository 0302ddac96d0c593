# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Resizing: interpolate() and its older names."""

import math
import warnings

from holdfast import _C

from .pooling import as_planes
from .pooling_adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_ops = _C.ops

# PyTorch's mode -> the op's, and the dimensions it resizes (0: any).
_MODES = {
    "nearest": ("nearest", 0),
    "nearest-exact": ("nearest-exact", 0),
    "linear": ("linear", 1),
    "bilinear": ("linear", 2),
    "bicubic": ("cubic", 2),
    "trilinear": ("linear", 3),
    "area": ("area", 0),
}


def _target(input, size, scale_factor, recompute):
    """(sizes, scales): the output's sizes, and the factors that positions are
    computed with (0: the ratio of the sizes)."""
    axes = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = scale_factor if size is None else size
    name = "scale_factor" if size is None else "output size"
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,) * axes
    if len(values) != axes:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(input.shape[2:])} and "
            f"{name} of {given}."
        )
    if size is not None:
        if recompute:
            raise ValueError(
                "recompute_scale_factor is not meaningful with an explicit size."
            )
        sizes, scales = tuple(int(n) for n in values), (0.0,) * axes
    else:
        sizes = tuple(math.floor(n * f) for n, f in zip(input.shape[2:], values))
        scales = (0.0,) * axes if recompute else tuple(float(f) for f in values)
    if min(sizes) < 1 or 0 in input.shape[2:]:
        raise RuntimeError(
            "[interpolate] Input and output sizes should be greater than 0, but got "
            f"input {list(input.shape[2:])} and output {list(sizes)}"
        )
    return sizes, scales


def _nearest_elements(input, sizes, scales, exact):
    """ "nearest" for types that have no arithmetic, by index."""
    for i, (size, scale) in enumerate(zip(sizes, scales)):
        n = input.shape[2 + i]
        step = 1 / scale if scale else n / size
        at = [min(int((j + 0.5 * exact) * step), n - 1) for j in range(size)]
        input = _ops.index_select(input, 2 + i, _C.tensor(at, dtype=_C.int64))
    return input


def _resize(input, sizes, scales, mode, align):
    if len(sizes) == 1:
        row = input.unsqueeze(-2)
        out = _ops.resample2d(row, (1, *sizes), mode, align, 0.0, *scales)
        return out.squeeze(-2)
    if len(sizes) == 2:
        return _ops.resample2d(input, sizes, mode, align, *scales)
    n, c, d = input.shape[:3]
    plane = sizes[1] * sizes[2]
    planes = _ops.resample2d(as_planes(input), sizes[1:], mode, align, *scales[1:])
    out = _ops.resample2d(
        planes.reshape(n, c, d, plane), (sizes[0], plane), mode, align, scales[0], 0.0
    )
    return out.reshape(n, c, *sizes)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """[N, C, ...] with one to three sizes, resized.

    Modes: nearest, nearest-exact, area (any number of sizes), linear (one),
    bilinear, bicubic (two; these also with `antialias`), trilinear (three).
    """
    if mode not in _MODES:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | area | nearest-exact (got {mode})"
        )
    own_mode, axes = _MODES[mode]
    if own_mode in ("nearest", "nearest-exact", "area"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    if input.dim() not in (3, 4, 5):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D)"
        )
    sizes, scales = _target(
        input, size, scale_factor, recompute_scale_factor or mode == "area" and not size
    )
    if axes not in (0, len(sizes)):
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {axes + 2}D input"
        )
    if antialias:
        if mode not in ("bilinear", "bicubic"):
            raise ValueError(
                "Anti-alias option is only supported for bilinear and bicubic modes"
            )
        own_mode += "-antialias"
    if mode == "area":
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[len(sizes) - 1](input, sizes)
    if axes == 0 and not input.is_floating_point():
        return _nearest_elements(input, sizes, scales, mode == "nearest-exact")
    return _resize(input, sizes, scales, own_mode, bool(align_corners))


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate() under its old name."""
    warnings.warn(
        "nn.functional.upsample is deprecated. Use nn.functional.interpolate instead."
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate(mode="nearest") under its old name."""
    warnings.warn(
        "nn.functional.upsample_nearest is deprecated. "
        "Use nn.functional.interpolate instead."
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate(mode="bilinear", align_corners=True) under its old name."""
    warnings.warn(
        "nn.functional.upsample_bilinear is deprecated. "
        "Use nn.functional.interpolate instead."
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
