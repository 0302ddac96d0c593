# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Rounding to what a quantized type could hold, in floating point."""

from holdfast import _C
from holdfast._registry import function

_ops = _C.ops
Tensor = _C.Tensor


@function
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point)
    * scale.

    scale and zero_point: numbers or tensors of one element. The gradient passes
    where nothing was limited (Jacob et al. 2018).
    """
    name = "fake_quantize_per_tensor_affine"
    return _quantized(name, input, scale, zero_point, quant_min, quant_max)


@function
def fake_quantize_per_channel_affine(
    input, scale, zero_point, axis, quant_min, quant_max
):
    """fake_quantize_per_tensor_affine() with a scale and a zero_point for each entry
    along axis, 1-d tensors."""
    name = "fake_quantize_per_channel_affine"
    size = input.size(axis)
    for what, tensor in (("scale", scale), ("zero_point", zero_point)):
        if tuple(tensor.shape) != (size,):
            raise RuntimeError(
                f"[{name}] {what} must have an entry for each of input along axis "
                f"{axis}. Got {list(tensor.shape)} and {list(input.shape)}."
            )
    shape = [1] * input.dim()
    shape[axis] = size
    scale, zero_point = scale.view(shape), zero_point.view(shape)
    return _quantized(name, input, scale, zero_point, quant_min, quant_max)


def _quantized(name, input, scale, zero_point, low, high):
    if low > high:
        raise RuntimeError(
            f"[{name}] quant_min must be at most quant_max. Got {low} and {high}."
        )
    if isinstance(zero_point, Tensor):
        zero_point = zero_point.to(input.dtype)
    values = input.detach()
    rounded = _ops.round(values * (1 / scale) + zero_point)
    kept = _ops.logical_and(_ops.ge(rounded, low), _ops.le(rounded, high))
    result = (rounded.clamp(low, high) - zero_point) * scale
    # Its gradient is that of input.
    return result.detach() + _ops.where(kept, input - values, 0.0)
