# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elements of images rearranged: windows to columns and back, channels to
pixels and back."""

from holdfast import _C

from .sizes import pair, shape_text

__all__ = [
    "channel_shuffle",
    "fold",
    "native_channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]

_ops = _C.ops


def unfold(
    input,
    kernel_size,
    dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    stride: int | tuple[int, ...] = 1,
):
    """The windows of [N, C, H, W] as columns [N, C*KH*KW, L]; N may be missing."""
    windows = (pair(kernel_size), pair(dilation), pair(padding), pair(stride))
    if input.dim() == 3:
        return _ops.im2col(input.unsqueeze(0), *windows).squeeze(0)
    return _ops.im2col(input, *windows)


def fold(
    input,
    output_size,
    kernel_size,
    dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    stride: int | tuple[int, ...] = 1,
):
    """Adds the columns [N, C*KH*KW, L] where unfold() takes them from.

    -> [N, C, *output_size]; N may be missing.
    """
    windows = (pair(kernel_size), pair(dilation), pair(padding), pair(stride))
    if input.dim() == 2:
        batch = input.unsqueeze(0)
        return _ops.col2im(batch, pair(output_size), *windows).squeeze(0)
    return _ops.col2im(input, pair(output_size), *windows)


def _check_image(name, input, factor, what):
    if input.dim() < 3:
        raise RuntimeError(
            f"[{name}] {name} expects input to have at least 3 dimensions, but got "
            f"input with {input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(
            f"[{name}] {name} expects a positive {what}, but got {factor}"
        )


def pixel_shuffle(input, upscale_factor):
    """[..., C*r*r, H, W] to [..., C, H*r, W*r]; r is upscale_factor."""
    r = upscale_factor
    _check_image("pixel_shuffle", input, r, "upscale_factor")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "[pixel_shuffle] pixel_shuffle expects its input's 'channel' dimension "
            "to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    split = input.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    result = split.permute(order).reshape(*lead, c // (r * r), h * r, w * r)
    return _C.show_as(result, "PixelShuffleBackward0", input)


def pixel_unshuffle(input, downscale_factor):
    """[..., C, H*r, W*r] to [..., C*r*r, H, W]; r is downscale_factor."""
    r = downscale_factor
    _check_image("pixel_unshuffle", input, r, "downscale_factor")
    *lead, c, h, w = input.shape
    if h % r or w % r:
        raise RuntimeError(
            "[pixel_unshuffle] pixel_unshuffle expects height and width to be "
            f"divisible by downscale_factor, but input {shape_text(input)} is not "
            f"divisible by {r}"
        )
    n = len(lead)
    split = input.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return split.permute(order).reshape(*lead, c * r * r, h // r, w // r)


def channel_shuffle(input, groups):
    """The channels (dimension 1) of each group in turn."""
    if input.dim() < 3:
        raise RuntimeError(
            "[channel_shuffle] channel_shuffle expects input with > 2 dims, but got "
            f"input with sizes {shape_text(input)}"
        )
    n, c, *sizes = input.shape
    if groups <= 0 or c % groups:
        raise RuntimeError(
            "[channel_shuffle] Number of channels must be divisible by a positive "
            f"number of groups. Got {c} channels and {groups} groups."
        )
    split = input.reshape(n, groups, c // groups, *sizes)
    return split.transpose(1, 2).reshape(n, c, *sizes)


native_channel_shuffle = channel_shuffle
