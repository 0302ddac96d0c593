# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisation."""

import holdfast as hf
import torch
from holdfast import _C

from holdfast_torch.composites import declare, declare_holdfast as composite

_ops = _C.ops


@composite("native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train,
    eps,
    output_mask,
):
    if train:
        variance = save_invstd**-2 - eps
        mean = save_mean
    else:
        mean, variance = running_mean, running_var
    grads = _ops.batch_norm_backward(
        grad_out, input, weight, mean, variance, eps, train
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@declare("native_batch_norm")
def native_batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps
):
    if not training:
        output = _batch_norm_by(input, weight, bias, running_mean, running_var, eps)
        none = input.new_empty(0)
        return output, none, none
    output, mean, var = _batch_norm(input, weight, bias, eps)
    count = input.numel() // max(input.shape[1], 1)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        unbiased = count / max(count - 1, 1)
        running_var.mul_(1 - momentum).add_(var, alpha=momentum * unbiased)
    return output, mean, torch.rsqrt(var + eps)


@composite()
def _batch_norm(input, weight, bias, eps):
    return _ops.batch_norm(input, weight, bias, None, None, eps)


@composite()
def _batch_norm_by(input, weight, bias, mean, var, eps):
    return _ops.batch_norm(input, weight, bias, mean, var, eps)[0]


@composite("native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    return hf.native_layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@composite("native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
):
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, 1, len(normalized_shape), True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@composite("native_group_norm_backward")
def native_group_norm_backward(
    grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
):
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, group, input.dim() - 1, True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))
