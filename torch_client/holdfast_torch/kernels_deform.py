# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torchvision's deform_conv2d: a convolution whose taps are moved by offsets."""

import holdfast as hf

from holdfast_torch.composites import declare_holdfast as composite, gradients


def _places(offset, kernel, stride, padding, dilation, out, groups):
    """Rows and columns [N*groups, taps, oh, ow] that the taps read, between pixels."""
    taps = kernel[0] * kernel[1]
    moved = offset.reshape(-1, taps, 2, *out)
    found = []
    for axis in (0, 1):
        steps = hf.arange(kernel[axis], dtype=offset.dtype) * dilation[axis]
        starts = hf.arange(out[axis], dtype=offset.dtype) * stride[axis] - padding[axis]
        if axis == 0:
            tap = steps.reshape(-1, 1).expand(*kernel).reshape(taps, 1, 1)
            where = starts.reshape(1, -1, 1) + tap
        else:
            tap = steps.reshape(1, -1).expand(*kernel).reshape(taps, 1, 1)
            where = starts.reshape(1, 1, -1) + tap
        found.append(moved[:, :, axis] + where)
    return found


def _read(x, y, column):
    """x [B,C,H,W] between pixels at y and column [B,P], 0 outside: [B,C,P]."""
    batch, channels, height, width = x.shape
    flat = x.reshape(batch, channels, height * width)
    top, left = y.detach().floor(), column.detach().floor()
    dy, dx = y - top, column - left
    total = None
    for down, share_y in ((0, 1 - dy), (1, dy)):
        for right, share_x in ((0, 1 - dx), (1, dx)):
            row, col = top + down, left + right
            inside = (row >= 0) & (row < height) & (col >= 0) & (col < width)
            # Limits before the conversion: an offset may be any number.
            row, col = row.clamp(0, height - 1), col.clamp(0, width - 1)
            place = (row * width + col).to(hf.int64).unsqueeze(1)
            value = flat.gather(2, place.expand(batch, channels, place.shape[2]))
            share = (share_y * share_x * inside.to(x.dtype)).unsqueeze(1)
            total = value * share if total is None else total + value * share
    return total


def _convolve(input, weight, offset, mask, bias, stride, padding, dilation, groups):
    """`groups`: those of the weights and of the offsets."""
    batch, channels = input.shape[:2]
    kernel, out = tuple(weight.shape[2:]), tuple(offset.shape[2:])
    taps, own = kernel[0] * kernel[1], groups[1]
    y, x = _places(offset, kernel, stride, padding, dilation, out, own)
    pictures = input.reshape(batch * own, channels // own, *input.shape[2:])
    read = _read(pictures, y.reshape(batch * own, -1), x.reshape(batch * own, -1))
    if mask is not None:
        read = read * mask.reshape(batch * own, 1, -1)
    columns = read.reshape(batch, groups[0], channels // groups[0] * taps, -1)
    rows = weight.reshape(groups[0], weight.shape[0] // groups[0], -1)
    result = (rows @ columns).reshape(batch, weight.shape[0], *out)
    return result if bias is None else result + bias.reshape(-1, 1, 1)


def _options(stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, own):
    return (
        (stride_h, stride_w),
        (pad_h, pad_w),
        (dilation_h, dilation_w),
        (groups, own),
    )


@composite()
def deform_conv2d(input, weight, offset, mask, bias, *options):
    *numbers, use_mask = options
    mask = mask if use_mask else None
    return _convolve(input, weight, offset, mask, bias, *_options(*numbers))


@composite()
def deform_conv2d_backward(grad, input, weight, offset, mask, bias, *options):
    *numbers, use_mask = options
    inputs = (input, weight, offset, mask if use_mask else None, bias)
    found = gradients(
        lambda *leaves: _convolve(*leaves, *_options(*numbers)), grad, *inputs
    )
    given = (input, weight, offset, mask, bias)
    return tuple(hf.zeros_like(x) if g is None else g for g, x in zip(found, given))
