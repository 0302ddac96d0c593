# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pooling over windows of [N, C, ...] or [C, ...] with one to three sizes.

The ops pool planes. Three dimensions are two steps: planes, then depth.
"""

import math

from holdfast import _C

from .rows import in_own_words
from .sizes import shape_text, spread

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

_ops = _C.ops


def check_rank(name, input, axes):
    """RuntimeError unless the input has `axes` dimensions and one or two more."""
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"[{name}] Expected {axes + 1}D or {axes + 2}D (batch mode) tensor "
            f"for input, but got: {shape_text(input)}"
        )


def as_planes(input):
    """[N, C, D, H, W] as the images [N, C*D, H, W]."""
    n, c, d, h, w = input.shape
    return input.reshape(n, c * d, h, w)


def max_over_depth(input, over_planes, over_depth, with_indices=True):
    """Largest elements and their positions in D*H*W of [N, C, D, H, W].

    `over_planes` and `over_depth` pool the last two dimensions; the second one
    leaves the last as it is.
    """
    if input.dim() == 4:
        result = max_over_depth(
            input.unsqueeze(0), over_planes, over_depth, with_indices
        )
        return tuple(x if x is None else x.squeeze(0) for x in result)
    n, c, d, h, w = input.shape
    values, inner = over_planes(as_planes(input))
    oh, ow = values.shape[-2:]
    values, outer = over_depth(values.reshape(n, c, d, oh * ow))
    shape = (n, c, values.shape[2], oh, ow)
    if not with_indices:
        return values.reshape(shape), None
    inner = _ops.max_pool2d_gather(inner.reshape(n, c, d, oh * ow), outer)
    indices = inner + outer.floor_divide(oh * ow) * (h * w)
    return values.reshape(shape), indices.reshape(shape)


def _stride(stride, kernel_size):
    """PyTorch reads an empty stride as the default too."""
    return kernel_size if stride is None or stride == () else stride


def _row(value, other):
    """A one-dimensional argument as that of images of one row."""
    return (other, *spread(value, 1))


def _pool_row(name, pool, input, kernel_size, stride, padding, *rest):
    """pool() of images of one row."""
    check_rank(name, input, 1)
    windows = (
        _row(kernel_size, 1),
        _row(_stride(stride, kernel_size), 1),
        _row(padding, 0),
    )
    try:
        return pool(input.unsqueeze(-2), *windows, *rest)
    except RuntimeError as error:
        in_own_words(error, name, (input,), row=True)
        raise


def max_pool1d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=True,
):
    """Largest element of each window of the last dimension, and its position."""
    args = (input, kernel_size, stride, padding, _row(dilation, 1), ceil_mode)
    output, indices = _pool_row("max_pool1d", max_pool2d_with_indices, *args)
    return output.squeeze(-2), indices.squeeze(-2)


def max_pool2d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=True,
):
    """Largest element of each window, and its int64 position in the H*W plane."""
    if input.dim() == 3:
        output, indices = max_pool2d_with_indices(
            input.unsqueeze(0), kernel_size, stride, padding, dilation, ceil_mode
        )
        return output.squeeze(0), indices.squeeze(0)
    stride = _stride(stride, kernel_size)
    return _ops.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool3d(input, kernel, stride, padding, dilation, ceil_mode, indices):
    check_rank("max_pool3d", input, 3)
    k, s = spread(kernel, 3), spread(_stride(stride, kernel), 3)
    p, d = spread(padding, 3), spread(dilation, 3)

    def over_planes(x):
        return _ops.max_pool2d(x, k[1:], s[1:], p[1:], d[1:], ceil_mode)

    def over_depth(x):
        return _ops.max_pool2d(x, (k[0], 1), (s[0], 1), (p[0], 0), (d[0], 1), ceil_mode)

    return max_over_depth(input, over_planes, over_depth, indices)


def max_pool3d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=True,
):
    """Largest element of each window of [N, C, D, H, W] or [C, D, H, W], and its
    int64 position in D*H*W."""
    return _max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=False,
):
    """Largest element of each window of [N, C, L] or [C, L].

    With `return_indices`, also the int64 positions in the last dimension.
    """
    both = max_pool1d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return both if return_indices else both[0]


def max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=False,
):
    """Largest element of each window; `stride` defaults to `kernel_size`.

    With `return_indices`, also the int64 positions in the H*W plane.
    """
    both = max_pool2d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return both if return_indices else both[0]


def max_pool3d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode=False,
    return_indices=False,
):
    """Largest element of each window of [N, C, D, H, W] or [C, D, H, W].

    With `return_indices`, also the int64 positions in D*H*W.
    """
    both = _max_pool3d(
        input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )
    return both if return_indices else both[0]


def avg_pool1d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode=False,
    count_include_pad=True,
):
    """Mean of each window of the last dimension of [N, C, L] or [C, L]."""
    args = (input, kernel_size, stride, padding, ceil_mode, count_include_pad)
    return _pool_row("avg_pool1d", avg_pool2d, *args).squeeze(-2)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window; `divisor_override` replaces the window's size."""
    rest = (padding, ceil_mode, count_include_pad, divisor_override)
    stride = _stride(stride, kernel_size)
    if input.dim() == 3:
        image = input.unsqueeze(0)
        return _ops.avg_pool2d(image, kernel_size, stride, *rest).squeeze(0)
    return _ops.avg_pool2d(input, kernel_size, stride, *rest)


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window of [N, C, D, H, W] or [C, D, H, W].

    `divisor_override` replaces the window's size.
    """
    check_rank("avg_pool3d", input, 3)
    if input.dim() == 4:
        batch = input.unsqueeze(0)
        args = (padding, ceil_mode, count_include_pad, divisor_override)
        return avg_pool3d(batch, kernel_size, stride, *args).squeeze(0)
    k, s = spread(kernel_size, 3), spread(_stride(stride, kernel_size), 3)
    p = spread(padding, 3)
    rest = (ceil_mode, count_include_pad)
    one = None if divisor_override is None else 1
    planes = _ops.avg_pool2d(as_planes(input), k[1:], s[1:], p[1:], *rest, one)
    n, c, d = input.shape[:3]
    oh, ow = planes.shape[-2:]
    columns = planes.reshape(n, c, d, oh * ow)
    result = _ops.avg_pool2d(
        columns, (k[0], 1), (s[0], 1), (p[0], 0), *rest, divisor_override
    )
    return result.reshape(n, c, result.shape[2], oh, ow)


def _lp_pool(axes, pool, input, norm_type, kernel_size, stride, ceil_mode):
    size = math.prod(spread(kernel_size, axes))
    mean = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    # As PyTorch has it: what is negative becomes zero.
    return (mean.sign() * mean.abs().relu() * size).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^norm_type)^(1/norm_type) over windows of [N, C, L] or [C, L]."""
    return _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^norm_type)^(1/norm_type) over windows of [N, C, H, W]."""
    return _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^norm_type)^(1/norm_type) over windows of [N, C, D, H, W]."""
    return _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


def _unpool_size(axes, input, kernel, stride, padding, output_size):
    k, p = spread(kernel, axes), spread(padding, axes)
    s = spread(_stride(stride, kernel), axes)
    default = [
        (n - 1) * s[i] + k[i] - 2 * p[i] for i, n in enumerate(input.shape[-axes:])
    ]
    if output_size is None:
        return default
    size = list(output_size)
    if len(size) == axes + 2:
        size = size[2:]
    if len(size) != axes:
        raise ValueError(
            f"output_size should be a sequence containing {axes} or {axes + 2} "
            f"elements, but it has a length of '{len(size)}'"
        )
    for d in range(axes):
        low, high = default[d] - s[d], default[d] + s[d]
        if not low < size[d] < high:
            raise ValueError(
                f'invalid output_size "{size}" (dim {d} must be between {low} and '
                f"{high})"
            )
    return size


def _max_unpool(axes, input, indices, kernel, stride, padding, output_size):
    name = f"max_unpool{axes}d"
    check_rank(name, input, axes)
    if input.shape != indices.shape:
        raise RuntimeError(
            f"[{name}] Expected shape of indices to be same as that of the input "
            f"tensor ({shape_text(input)}) but got indices tensor with shape: "
            f"{shape_text(indices)}"
        )
    size = _unpool_size(axes, input, kernel, stride, padding, output_size)
    lead = tuple(input.shape[:-axes])
    total, count = math.prod(size), math.prod(input.shape[-axes:])
    # Equal indices have equal values: one of them is written, not their sum.
    zeros = _ops.full((*lead, total), 0, dtype=input.dtype)
    flat = _ops.scatter(
        zeros, -1, indices.reshape(*lead, count), input.reshape(*lead, count)
    )
    return flat.reshape(*lead, *size)


def max_unpool1d(
    input,
    indices,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    output_size=None,
):
    """Zeros, with max_pool1d's results at the indices it returned."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input,
    indices,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    output_size=None,
):
    """Zeros, with max_pool2d's results at the indices it returned."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input,
    indices,
    kernel_size,
    stride=None,
    padding: int | tuple[int, ...] = 0,
    output_size=None,
):
    """Zeros, with max_pool3d's results at the indices it returned."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)
