# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Linear maps, convolutions and transposed convolutions."""

from holdfast import _C

from .rows import in_own_words
from .sizes import same_padding, shape_text, spread

__all__ = [
    "bilinear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "linear",
]

_ops = _C.ops
# grad_fn of every convolution, in PyTorch.
_NODE = "ConvolutionBackward0"


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


def _check_ranks(name, axes, input, weight):
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"[{name}] Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) "
            f"input to {name}, but got input of size: {shape_text(input)}"
        )
    if weight.dim() != axes + 2:
        raise RuntimeError(
            f"[{name}] weight must have {axes + 2} dimensions, but got weight of "
            f"size: {shape_text(weight)}"
        )


def _conv1d(input, weight, *args):
    try:
        return _conv(1, input, weight, *args)
    except RuntimeError as error:
        in_own_words(error, "conv1d", (input, weight), row=True)
        raise


def _conv(axes, input, weight, bias, stride, padding, dilation, groups):
    _check_ranks(f"conv{axes}d", axes, input, weight)
    if input.dim() == axes + 1:
        batch = input.unsqueeze(0)
        args = (weight, bias, stride, padding, dilation, groups)
        return _conv(axes, batch, *args).squeeze(0)
    stride, dilation = spread(stride, axes), spread(dilation, axes)
    if isinstance(padding, str):
        sides = same_padding(padding, tuple(weight.shape[2:]), stride, dilation)
        # What is needed on both sides is the op's; the rest is added here.
        extra = [n for before, after in sides[::-1] for n in (0, after - before)]
        if any(extra):
            input = _ops.constant_pad(input, extra, 0)
        padding = tuple(before for before, _ in sides)
    padding = spread(padding, axes)
    if axes == 3:
        return _ops.conv3d(input, weight, bias, stride, padding, dilation, groups)
    if axes == 2:
        return _ops.conv2d(input, weight, bias, stride, padding, dilation, groups)
    result = _ops.conv2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, *stride),
        (0, *padding),
        (1, *dilation),
        groups,
    ).squeeze(-2)
    return _C.show_as(result, _NODE, input, weight, bias)


def conv1d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups=1,
):
    """1-D cross-correlation.

    input [N, C, L] or [C, L], weight [O, C/groups, K], bias [O] -> [N, O, L'].
    `padding` is an int, "valid" or "same" (stride 1 only).
    """
    return _conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups=1,
):
    """2-D cross-correlation.

    input [N, C, H, W] or [C, H, W], weight [O, C/groups, KH, KW], bias [O].
    `padding` is one or two ints, "valid" or "same" (stride 1 only).
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups=1,
):
    """3-D cross-correlation.

    input [N, C, D, H, W] or [C, D, H, W], weight [O, C/groups, KD, KH, KW].
    `padding` is one or three ints, "valid" or "same" (stride 1 only).
    """
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _check_transpose(name, input, weight, bias, groups, lead):
    channels = input.shape[lead - 1]
    given = f"[{name}] Given transposed=1, weight of size {shape_text(weight)}, "
    if groups < 1:
        raise RuntimeError(f"[{name}] non-positive groups is not supported")
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"{given}expected weight to be divisible by {groups} at dimension 0"
        )
    if channels != weight.shape[0]:
        raise RuntimeError(
            f"{given}expected input{shape_text(input)} to have {weight.shape[0]} "
            f"channels, but got {channels} channels instead"
        )
    wanted = weight.shape[1] * groups
    if bias is not None and tuple(bias.shape) != (wanted,):
        raise RuntimeError(
            f"{given}expected bias to be 1-dimensional with {wanted} elements, "
            f"but got bias of size {shape_text(bias)} instead"
        )


def _conv_transpose(
    axes, input, weight, bias, stride, padding, output_padding, groups, dilation
):
    """The input gradient of a convolution, as an op of its own."""
    name = f"conv_transpose{axes}d"
    _check_ranks(name, axes, input, weight)
    if input.dim() == axes + 1:
        args = (weight, bias, stride, padding, output_padding, groups, dilation)
        return _conv_transpose(axes, input.unsqueeze(0), *args).squeeze(0)
    _check_transpose(name, input, weight, bias, groups, 2)
    stride, dilation = spread(stride, axes), spread(dilation, axes)
    padding, output_padding = spread(padding, axes), spread(output_padding, axes)
    for what, values in (("padding", padding), ("output_padding", output_padding)):
        if any(n < 0 for n in values):
            raise RuntimeError(f"[{name}] negative {what} is not supported")
    if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation)):
        raise RuntimeError(
            f"[{name}] output padding must be smaller than either stride or "
            f"dilation, but got output_padding={output_padding}, stride={stride}, "
            f"dilation={dilation}"
        )
    kernel = tuple(weight.shape[2:])
    # Where each window lies, from the first one's start to the last one's end.
    full = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(input.shape[2:], stride, dilation, kernel)
    ]
    crop = None
    if any(o >= s for o, s in zip(output_padding, stride)):
        # A convolution would have one more window there: pad by hand.
        sides = [(-p, o - p) for p, o in zip(padding, output_padding)]
        crop = [n for side in sides[::-1] for n in side]
        padding = output_padding = (0,) * axes
    size = [f - 2 * p + o for f, p, o in zip(full, padding, output_padding)]
    if any(n < 1 for n in size):
        raise RuntimeError(
            f"[{name}] Given input size per channel: {shape_text(input)[1:-1]}. "
            f"Calculated output size per channel: {size}. Output size is too small"
        )
    channels = weight.shape[1] * groups
    inputs = input, weight, bias
    one = axes == 1
    if one:
        input, weight, size = input.unsqueeze(-2), weight.unsqueeze(-2), [1, *size]
        stride, padding, dilation = (1, *stride), (0, *padding), (1, *dilation)
    op = _ops.conv3d_backward_input if axes == 3 else _ops.conv2d_backward_input
    size = [input.shape[0], channels, *size]
    try:
        result = op(input, weight, size, stride, padding, dilation, groups)
    except RuntimeError as error:
        in_own_words(error, name, inputs[:2], row=one)
        raise
    result = result.squeeze(-2) if one else result
    if crop:
        result = _ops.constant_pad(result, crop, 0)
    if bias is not None:
        if _C.autocast_is_on(result.is_cuda):
            bias = bias.to(result.dtype)
        result = result + bias.reshape(-1, *(1,) * axes)
    return _C.show_as(result, _NODE, *inputs)


def conv_transpose1d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups=1,
    dilation: int | tuple[int, ...] = 1,
):
    """1-D transposed convolution: conv1d's gradient for its input.

    input [N, C, L] or [C, L], weight [C, O/groups, K], bias [O] -> [N, O, L'].
    """
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups=1,
    dilation: int | tuple[int, ...] = 1,
):
    """2-D transposed convolution: conv2d's gradient for its input.

    input [N, C, H, W] or [C, H, W], weight [C, O/groups, KH, KW], bias [O].
    """
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input,
    weight,
    bias=None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups=1,
    dilation: int | tuple[int, ...] = 1,
):
    """3-D transposed convolution: conv3d's gradient for its input.

    input [N, C, D, H, W] or [C, D, H, W], weight [C, O/groups, KD, KH, KW].
    """
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
