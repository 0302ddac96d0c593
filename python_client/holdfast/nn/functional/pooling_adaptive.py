# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pooling to a given size, over windows that cover the input."""

from holdfast import _C

from .pooling import as_planes, avg_pool2d, check_rank, max_over_depth, max_pool2d
from .sizes import shape_text

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
]

_ops = _C.ops


def _wanted(name, input, output_size, axes):
    """The output's sizes; None keeps the input's."""
    check_rank(name, input, axes)
    sizes = tuple(input.shape[-axes:])
    if output_size is None or isinstance(output_size, int):
        output_size = (output_size,) * axes
    output_size = tuple(output_size)
    if len(output_size) != axes:
        raise RuntimeError(
            f"[{name}] output_size must be {axes} ints. Got {output_size}."
        )
    wanted = tuple(n if o is None else int(o) for o, n in zip(output_size, sizes))
    if any(n <= 0 for n in wanted) or 0 in sizes:
        raise RuntimeError(
            f"[{name}] Expected input to have non-zero size for non-batch "
            f"dimensions and output_size to be positive, but got input "
            f"{shape_text(input)} and output_size {wanted}"
        )
    return wanted


def _window(sizes, wanted):
    """The size of the windows, if they are all alike and do not overlap."""
    if any(n % w for n, w in zip(sizes, wanted)):
        return None
    return tuple(n // w for n, w in zip(sizes, wanted))


def _average(input, wanted):
    """[..., H, W] to the wanted H and W."""
    sizes = tuple(input.shape[-2:])
    if wanted == sizes:
        return input.clone()
    if wanted == (1, 1):
        return _ops.mean(input, (-2, -1), True)
    window = _window(sizes, wanted)
    if window and max(window) < 16:
        result = avg_pool2d(input, window)
    else:
        result = _ops.resample2d(input, wanted, "area")
    return _C.show_as(result, "AdaptiveAvgPool2DBackward0", input)


def adaptive_avg_pool1d(input, output_size):
    """Mean over windows such that the output is output_size (L; None keeps)."""
    wanted = _wanted("adaptive_avg_pool1d", input, output_size, 1)
    return _average(input.unsqueeze(-2), (1, *wanted)).squeeze(-2)


def adaptive_avg_pool2d(input, output_size):
    """Mean over windows such that the output is output_size (H, W; None keeps)."""
    return _average(input, _wanted("adaptive_avg_pool2d", input, output_size, 2))


def adaptive_avg_pool3d(input, output_size):
    """Mean over windows such that the output is output_size (D, H, W)."""
    wanted = _wanted("adaptive_avg_pool3d", input, output_size, 3)
    if wanted == (1, 1, 1):
        return _ops.mean(input, (-3, -2, -1), True)
    *lead, d, _, _ = input.shape
    batch = input if input.dim() == 5 else input.unsqueeze(0)
    planes = _average(as_planes(batch), wanted[1:])
    columns = planes.reshape(*lead, d, wanted[1] * wanted[2])
    result = _average(columns, (wanted[0], columns.shape[-1]))
    return result.reshape(*lead, *wanted)


def _max(input, wanted):
    """Values and indices of [..., H, W] at the wanted H and W."""
    if input.dim() == 3:
        values, indices = _max(input.unsqueeze(0), wanted)
        return values.squeeze(0), indices.squeeze(0)
    window = _window(tuple(input.shape[-2:]), wanted)
    if window:
        return max_pool2d(input, window, return_indices=True)
    return _ops.adaptive_max_pool2d(input, wanted)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size, and its
    int64 position in the last dimension."""
    wanted = _wanted("adaptive_max_pool1d", input, output_size, 1)
    values, indices = _max(input.unsqueeze(-2), (1, *wanted))
    return values.squeeze(-2), indices.squeeze(-2)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size, and its
    int64 position in the H*W plane."""
    return _max(input, _wanted("adaptive_max_pool2d", input, output_size, 2))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size, and its
    int64 position in D*H*W."""
    wanted = _wanted("adaptive_max_pool3d", input, output_size, 3)
    return max_over_depth(
        input,
        lambda x: _max(x, wanted[1:]),
        lambda x: _max(x, (wanted[0], x.shape[-1])),
    )


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size (L)."""
    both = adaptive_max_pool1d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size (H, W)."""
    both = adaptive_max_pool2d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size."""
    both = adaptive_max_pool3d_with_indices(input, output_size)
    return both if return_indices else both[0]
