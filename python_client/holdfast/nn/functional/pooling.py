# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pooling over windows of [N, C, H, W] or [C, H, W]."""

from holdfast import _C
from holdfast.errors import UnsupportedError

from .sizes import pair

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_with_indices",
]

_ops = _C.ops


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    """Largest element of each window, and its int64 position in the H*W plane."""
    if input.dim() == 3:
        output, indices = max_pool2d_with_indices(
            input.unsqueeze(0), kernel_size, stride, padding, dilation, ceil_mode
        )
        return output.squeeze(0), indices.squeeze(0)
    # PyTorch reads an empty stride as the default too.
    stride = kernel_size if stride is None or stride == () else stride
    return _ops.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
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


def max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
):
    """max_pool2d over the last dimension of [N, C, L] or [C, L]."""
    output, indices = max_pool2d_with_indices(
        input.unsqueeze(-2),
        (1, _single(kernel_size)),
        None if stride is None else (1, _single(stride)),
        (0, _single(padding)),
        (1, _single(dilation)),
        ceil_mode,
    )
    output = output.squeeze(-2)
    return (output, indices.squeeze(-2)) if return_indices else output


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window; `divisor_override` replaces the window's size."""
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if input.dim() == 3:
        return avg_pool2d(
            input.unsqueeze(0),
            kernel_size,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        ).squeeze(0)
    stride = kernel_size if stride is None or stride == () else stride
    if divisor_override is None:
        return _ops.avg_pool2d(
            input, kernel_size, stride, padding, ceil_mode, count_include_pad
        )
    if ceil_mode:
        # Windows that reach over the edge are divided by a smaller number,
        # which a factor cannot undo.
        raise UnsupportedError(
            "holdfast has no avg_pool2d(ceil_mode=True, divisor_override=...)."
        )
    height, width = pair(kernel_size)
    mean = _ops.avg_pool2d(input, kernel_size, stride, padding, False, True)
    return mean * (height * width / divisor_override)


def avg_pool1d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
):
    """avg_pool2d over the last dimension of [N, C, L] or [C, L]."""
    return avg_pool2d(
        input.unsqueeze(-2),
        (1, _single(kernel_size)),
        None if stride is None else (1, _single(stride)),
        (0, _single(padding)),
        ceil_mode,
        count_include_pad,
    ).squeeze(-2)


def adaptive_avg_pool2d(input, output_size):
    """Mean over windows such that the output is output_size (H, W; None keeps).

    The input's sizes must be multiples of it (NotImplementedError).
    """
    return avg_pool2d(input, _window("adaptive_avg_pool2d", input, output_size))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest element over windows such that the output is output_size."""
    window = _window("adaptive_max_pool2d", input, output_size)
    return max_pool2d(input, window, return_indices=return_indices)


def _window(name, input, output_size):
    if input.dim() not in (3, 4):
        raise RuntimeError(
            f"[{name}] input must be [N, C, H, W] or [C, H, W]. "
            f"Got {tuple(input.shape)}."
        )
    sizes = tuple(input.shape[-2:])
    wanted = [
        size if n is None else n
        for n, size in zip(
            (
                (output_size, output_size)
                if output_size is None or isinstance(output_size, int)
                else tuple(output_size)
            ),
            sizes,
        )
    ]
    if any(n <= 0 or size % n for n, size in zip(wanted, sizes)):
        raise UnsupportedError(
            f"holdfast has no {name} to sizes that do not divide the input's. "
            f"Got input {sizes}, output {tuple(wanted)}."
        )
    return tuple(size // n for size, n in zip(sizes, wanted))


def _single(value):
    return value if isinstance(value, int) else value[0]
