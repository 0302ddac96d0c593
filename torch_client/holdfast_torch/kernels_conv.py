# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Convolutions."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite, in_float64

F = hf.nn.functional
_ops = _C.ops

_PLAIN = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


@composite("convolution_overrideable")
def convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    where = input.dim() - 3
    stride, padding, dilation = tuple(stride), tuple(padding), tuple(dilation)

    def convolve(input, weight, bias):
        if transposed:
            extra = tuple(output_padding)
            return _TRANSPOSED[where](
                input, weight, bias, stride, padding, extra, groups, dilation
            )
        return _PLAIN[where](input, weight, bias, stride, padding, dilation, groups)

    return in_float64(convolve, input, weight, bias)


@composite("convolution_backward_overrideable")
def convolution_backward(
    grad_output,
    input,
    weight,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    places = tuple(stride), tuple(padding), tuple(dilation)
    tensors = grad_output, input, weight
    lift = input.dim() == 3
    if lift:
        tensors = tuple(t.unsqueeze(2) for t in tensors)
        places = tuple((n, *p) for n, p in zip((1, 0, 1), places))
    found = _transposed_gradients if transposed else _gradients
    results = found(*tensors, (*places, groups), output_mask)
    if lift:
        results = [None if r is None else r.squeeze(2) for r in results]
    to_bias = None
    if output_mask[2]:
        to_bias = grad_output.sum((0, *range(2, grad_output.dim())))
    return (*results, to_bias)


def _operators(weight):
    """A convolution and its gradients for the input and the weight."""
    if weight.dim() == 5:
        return _ops.conv3d, _ops.conv3d_backward_input, _ops.conv3d_backward_weight
    return _ops.conv2d, _ops.conv2d_backward_input, _ops.conv2d_backward_weight


def _gradients(grad, x, w, places, output_mask):
    _, to_input, to_weight = _operators(w)
    return [
        to_input(grad, w, tuple(x.shape), *places) if output_mask[0] else None,
        to_weight(grad, x, tuple(w.shape), *places) if output_mask[1] else None,
    ]


def _transposed_gradients(grad, x, w, places, output_mask):
    """A transposed convolution is the gradient of a plain one, and the reverse."""
    forward, _, to_weight = _operators(w)
    # Output padding of a whole stride is where further elements of x would be.
    beyond = _beyond(grad, x, w, places)
    to_x = to_w = None
    if output_mask[0]:
        to_x = forward(grad, w, None, *places)
        for i, size in enumerate(x.shape[2:]):
            to_x = to_x.narrow(2 + i, 0, size) if beyond[i] else to_x
    if output_mask[1]:
        if any(beyond):
            ends = [n for size in reversed(beyond) for n in (0, size)]
            x = _ops.constant_pad(x, ends)
        to_w = to_weight(x, grad, tuple(w.shape), *places)
    return [to_x, to_w]


def _beyond(grad, x, w, places):
    sizes = zip(grad.shape[2:], x.shape[2:], w.shape[2:], *places[:3])
    return [
        (out + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 - size
        for out, size, kernel, stride, padding, dilation in sizes
    ]
