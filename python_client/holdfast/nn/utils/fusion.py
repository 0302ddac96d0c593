# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Batch normalisation folded into the layer before it, for evaluation."""

import copy

import holdfast

from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fused(weight, bias, mean, var, eps, bn_weight, bn_bias, dim):
    bias = holdfast.zeros_like(mean) if bias is None else bias
    bn_weight = holdfast.ones_like(mean) if bn_weight is None else bn_weight
    bn_bias = holdfast.zeros_like(mean) if bn_bias is None else bn_bias
    factor = bn_weight * holdfast.rsqrt(var + eps)
    shape = [1] * weight.dim()
    shape[dim] = -1
    new_weight = Parameter((weight * factor.reshape(shape)).detach())
    return new_weight, Parameter(((bias - mean) * factor + bn_bias).detach())


def fuse_conv_bn_weights(
    conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False
):
    """(weight, bias) of the convolution that does both."""
    dim = 1 if transpose else 0
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, dim)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """(weight, bias) of the linear layer that does both."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fuse(layer, bn, fuse, *options):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse(
        layer.weight,
        layer.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        *options,
    )
    return made


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of the convolution that does the normalisation, too; both in eval."""
    return _fuse(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that does the normalisation, too; both in eval."""
    return _fuse(linear, bn, fuse_linear_bn_weights)
