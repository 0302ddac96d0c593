# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Linear maps and convolutions."""

from holdfast import _C
from holdfast.errors import UnsupportedError

from .sizes import pair, same_padding

__all__ = ["bilinear", "conv1d", "conv2d", "linear", "pad"]

_ops = _C.ops


def linear(input, weight, bias=None):
    """input @ weight.T + bias.

    input [..., in], weight [out, in], bias [out] -> [..., out].
    """
    return _ops.linear(input, weight, bias)


def bilinear(input1, input2, weight, bias=None):
    """input1^T A_k input2 + bias for each output k.

    input1 [..., in1], input2 [..., in2], weight [out, in1, in2] -> [..., out].
    """
    left = input1.unsqueeze(-2).unsqueeze(-2)  # [..., 1, 1, in1]
    product = left.matmul(weight).squeeze(-2)  # [..., out, in2]
    result = product.matmul(input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """2-D cross-correlation.

    input [N, C, H, W] or [C, H, W], weight [O, C/groups, KH, KW], bias [O].
    `padding` is one or two ints, "valid" or "same" (stride 1 only).
    """
    if input.dim() == 3:
        batch = input.unsqueeze(0)
        return conv2d(batch, weight, bias, stride, padding, dilation, groups).squeeze(0)
    if isinstance(padding, str):
        kernel = tuple(weight.shape[2:])
        top, bottom, left, right = same_padding(
            padding, kernel, pair(stride), pair(dilation)
        )
        if (top, left) != (bottom, right):
            input = _ops.constant_pad(input, (0, right - left, 0, bottom - top), 0)
        padding = (top, left)
    return _ops.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """1-D cross-correlation: input [N, C, L] or [C, L], weight [O, C/groups, K]."""

    def wide(value, other):
        if isinstance(value, str):
            return value
        return (other, value if isinstance(value, int) else value[0])

    return conv2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        wide(stride, 1),
        wide(padding, 0),
        wide(dilation, 1),
        groups,
    ).squeeze(-2)


def pad(input, pad, mode="constant", value=None):
    """Pads with a constant; `pad` lists (before, after) from the last dimension.

    Negative amounts crop. Other modes raise NotImplementedError.
    """
    if mode != "constant":
        raise UnsupportedError(f"holdfast has no pad(mode='{mode}'); only 'constant'.")
    return _ops.constant_pad(input, tuple(pad), 0 if value is None else value)
