# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Convolutions."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare, declare_holdfast as composite

F = hf.nn.functional
_ops = _C.ops


@composite("convolution_overrideable")
def convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    dims = input.dim() - 2
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
        return function[dims - 1](
            input,
            weight,
            bias,
            tuple(stride),
            tuple(padding),
            tuple(output_padding),
            groups,
            tuple(dilation),
        )
    function = (F.conv1d, F.conv2d, F.conv3d)
    return function[dims - 1](
        input, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups
    )


@declare("convolution_backward_overrideable")
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
    return _convolution_backward(
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
    )


@composite()
def _convolution_backward(
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
    dims = input.dim() - 2
    stride, padding, dilation = map(tuple, (stride, padding, dilation))
    lift = dims == 1
    grad, x, w = grad_output, input, weight
    if lift:
        grad, x, w = (t.unsqueeze(2) for t in (grad, x, w))
        stride, padding, dilation = (1, *stride), (0, *padding), (1, *dilation)
    rank = max(dims, 2)
    to_input = _ops.conv2d_backward_input if rank == 2 else _ops.conv3d_backward_input
    to_weight = (
        _ops.conv2d_backward_weight if rank == 2 else _ops.conv3d_backward_weight
    )
    forward = _ops.conv2d if rank == 2 else _ops.conv3d
    rest = (stride, padding, dilation, groups)
    results = [None, None, None]
    if output_mask[0]:
        # A transposed convolution is the gradient of a plain one, and the reverse.
        results[0] = (
            forward(grad, w, None, *rest)
            if transposed
            else to_input(grad, w, tuple(x.shape), *rest)
        )
    if output_mask[1]:
        results[1] = (
            to_weight(x, grad, tuple(w.shape), *rest)
            if transposed
            else to_weight(grad, x, tuple(w.shape), *rest)
        )
    if lift:
        results = [None if r is None else r.squeeze(2) for r in results]
    if output_mask[2]:
        over = (0, *range(2, grad_output.dim()))
        results[2] = grad_output.sum(over)
    return tuple(results)
