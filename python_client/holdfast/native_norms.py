# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisations that also return the statistics they use."""

from holdfast import _C
from holdfast._registry import function
from holdfast.constants import in_graph_of
from holdfast.reductions import var

_ops = _C.ops


@function
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(layer_norm(), mean, 1 / standard deviation)."""
    from holdfast.nn.functional import normalization

    check = normalization._normalized_shape
    shape = check(input, normalized_shape, weight=weight, bias=bias)
    output, mean, rstd = _ops.group_norm(input, weight, bias, 1, len(shape), eps)
    kept = (*input.shape[: input.dim() - len(shape)], *(1,) * len(shape))
    return output, mean.detach().reshape(kept), rstd.detach().reshape(kept)


@function
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(group_norm(), mean, 1 / standard deviation), the latter [N, group]."""
    output, mean, rstd = _ops.group_norm(input, weight, bias, group, 0, eps)
    kept = (N, group)
    if input.requires_grad and _C.is_grad_enabled():
        # The op has no gradient of its statistics.
        rows = input.reshape(N, group, C // group * HxW)
        mean = _ops.mean(rows, (2,))
        rstd = _ops.rsqrt(var(rows, 2, unbiased=False) + eps)
        return output, mean, rstd
    statistics = (x.detach().reshape(kept) for x in (mean, rstd))
    return output, *(in_graph_of(x, weight, bias) for x in statistics)


@function
def native_batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps
):
    """(batch_norm(), mean, 1 / standard deviation); without training both are empty."""
    from holdfast.nn.functional import batch_norm

    own = (running_mean, running_var, weight, bias)
    output = batch_norm(input, *own, training, momentum, eps)
    if not training:
        empty = _ops.empty((0,), dtype=input.dtype)
        return output, empty, _ops.clone(empty)
    dims = [d for d in range(input.dim()) if d != 1]
    mean = _ops.mean(input.detach(), dims)
    variance = var(input.detach(), dims, unbiased=False)
    return output, mean, _ops.rsqrt(variance + eps)


@function(names=("_native_batch_norm_legit",))
def _native_batch_norm_legit(input, weight, bias, *rest):
    """native_batch_norm() with (running_mean, running_var, training, momentum, eps), or
    with (training, momentum, eps) alone, which has no running statistics."""
    if len(rest) == 3:
        rest = (None, None, *rest)
    return native_batch_norm(input, weight, bias, *rest)


@function(names=("_batch_norm_with_update",))
def _batch_norm_with_update(
    input, weight, bias, running_mean, running_var, momentum, eps
):
    """native_batch_norm() in training, and uint8 [0], which is kept for backward."""
    own = (weight, bias, running_mean, running_var)
    results = native_batch_norm(input, *own, True, momentum, eps)
    return (*results, _ops.empty((0,), dtype=_C.uint8, device=input.device))
