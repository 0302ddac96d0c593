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
    lead = tuple(input.shape[: input.dim() - len(normalized_shape)])
    mean, rstd = mean.reshape(lead), rstd.reshape(lead)
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, 1, len(normalized_shape), True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@composite("native_group_norm_backward")
def native_group_norm_backward(
    grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
):
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, group, 0, True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@declare("_native_batch_norm_legit")
def _native_batch_norm_legit(*args):
    return native_batch_norm(*args)


@declare("_native_batch_norm_legit.no_stats")
def _native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@declare("_batch_norm_with_update")
def _batch_norm_with_update(
    input, weight, bias, running_mean, running_var, momentum, eps
):
    own = (weight, bias, running_mean, running_var)
    results = native_batch_norm(input, *own, True, momentum, eps)
    return (*results, input.new_empty(0, dtype=torch.uint8))


@declare("_batch_norm_no_update")
def _batch_norm_no_update(
    input, weight, bias, running_mean, running_var, momentum, eps
):
    own = (weight, bias, running_mean, running_var)
    results = native_batch_norm(input, *own, False, momentum, eps)
    return (*results, input.new_empty(0, dtype=torch.uint8))


@declare("batch_norm_backward")
def batch_norm_backward(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_var,
    update,
    eps,
    output_mask,
    reserve,
):
    return native_batch_norm_backward(
        grad_out,
        input,
        weight,
        running_mean,
        running_var,
        save_mean,
        save_var,
        update,
        eps,
        output_mask,
    )


@declare("_weight_norm_interface")
def _weight_norm_interface(v, g, dim=0):
    norms = torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


@declare("_weight_norm_interface_backward")
def _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    over = [d for d in range(saved_v.dim()) if d != dim % saved_v.dim()]
    along = (grad_w * saved_v).sum(over, keepdim=True)
    to_v = saved_g / saved_norms * (grad_w - saved_v * (along / saved_norms**2))
    return to_v, along / saved_norms


@declare("_fused_rms_norm")
def _fused_rms_norm(input, normalized_shape, weight, eps):
    over = list(range(-len(normalized_shape), 0))
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    wide = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
    rstd = torch.rsqrt(wide.square().mean(over, keepdim=True) + eps)
    result = wide * rstd
    result = result if weight is None else result * weight
    return result.to(input.dtype), rstd


@declare("_fused_rms_norm_backward")
def _fused_rms_norm_backward(
    grad_out, input, normalized_shape, rstd, weight, output_mask
):
    inner = list(range(-len(normalized_shape), 0))
    outer = list(range(input.dim() - len(normalized_shape)))
    wide, grad = input.to(rstd.dtype), grad_out.to(rstd.dtype)
    scaled = grad if weight is None else grad * weight
    to_input = to_weight = None
    if output_mask[0]:
        along = (scaled * wide).mean(inner, keepdim=True)
        to_input = (rstd * (scaled - wide * rstd**2 * along)).to(input.dtype)
    if output_mask[1] and weight is not None:
        products = grad * wide * rstd
        to_weight = (products.sum(outer) if outer else products).to(weight.dtype)
    return to_input, to_weight
