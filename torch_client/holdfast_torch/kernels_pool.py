# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pooling."""

import math

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import (
    declare_holdfast as composite,
    gradients,
    in_float64,
)

F = hf.nn.functional
_ops = _C.ops


def _max_pool(name, pool):
    @composite(name)
    def kernel(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        places = kernel_size, stride or None, padding, dilation, ceil_mode
        wide = self if self.is_floating_point() else _ops.to(self, _C.float64)
        values, indices = pool(wide, *places, return_indices=True)
        return _ops.to(values, self.dtype), indices


_max_pool("max_pool2d_with_indices", F.max_pool2d)
_max_pool("max_pool3d_with_indices", F.max_pool3d)


@composite("max_unpool2d")
def max_unpool2d(self, indices, output_size):
    return _unpool(self, indices, output_size, 2)


@composite("max_unpool3d")
def max_unpool3d(self, indices, output_size, stride, padding):
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got {stride}")
    return _unpool(self, indices, output_size, 3)


def _unpool(self, indices, output_size, dims):
    if self.dim() not in (dims + 1, dims + 2) or 0 in tuple(self.shape)[1:]:
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d "
            f"Tensor, but got a tensor with {self.dim()} dimensions and sizes "
            f"{list(self.shape)}"
        )
    if tuple(indices.shape) != tuple(self.shape):
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(self.shape)}) but got indices tensor with shape: "
            f"{list(indices.shape)}"
        )
    lead = tuple(self.shape[:-dims])
    places = math.prod(output_size)
    flat = hf.zeros((*lead, places), dtype=self.dtype)
    result = flat.scatter(-1, indices.reshape(*lead, -1), self.reshape(*lead, -1))
    return result.reshape(*lead, *output_size)


@composite("avg_pool2d")
def avg_pool2d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    rest = padding, ceil_mode, count_include_pad, divisor_override
    return in_float64(
        lambda x: F.avg_pool2d(x, kernel_size, stride or None, *rest), self
    )


@composite("avg_pool3d")
def avg_pool3d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    rest = padding, ceil_mode, count_include_pad, divisor_override
    return in_float64(
        lambda x: F.avg_pool3d(x, kernel_size, stride or None, *rest), self
    )


@composite("_adaptive_avg_pool2d")
def _adaptive_avg_pool2d(self, output_size):
    return F.adaptive_avg_pool2d(self, tuple(output_size))


@composite("_adaptive_avg_pool3d")
def _adaptive_avg_pool3d(self, output_size):
    return F.adaptive_avg_pool3d(self, tuple(output_size))


@composite("adaptive_max_pool2d")
def adaptive_max_pool2d(self, output_size):
    return F.adaptive_max_pool2d(self, tuple(output_size), return_indices=True)


@composite("adaptive_max_pool3d")
def adaptive_max_pool3d(self, output_size):
    return F.adaptive_max_pool3d(self, tuple(output_size), return_indices=True)


# ---- gradients


def _at_indices(grad, self, indices, dims):
    """grad added where indices, into the last dims dimensions of self, point."""
    lead = tuple(self.shape[:-dims])
    flat = hf.zeros((*lead, math.prod(self.shape[-dims:])), dtype=grad.dtype)
    rows = indices.reshape(*lead, -1), grad.reshape(*lead, -1)
    return _ops.scatter_add(flat, -1, *rows).reshape(self.shape)


@composite("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    return _at_indices(grad_output, self, indices, 2)


@composite("max_pool3d_with_indices_backward")
def max_pool3d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    return _at_indices(grad_output, self, indices, 3)


@composite("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(grad_output, self, indices):
    return _at_indices(grad_output, self, indices, 2)


@composite("adaptive_max_pool3d_backward")
def adaptive_max_pool3d_backward(grad_output, self, indices):
    return _at_indices(grad_output, self, indices, 3)


@composite("fractional_max_pool2d_backward")
def fractional_max_pool2d_backward(
    grad_output, self, kernel_size, output_size, indices
):
    return _at_indices(grad_output, self, indices, 2)


@composite("fractional_max_pool3d_backward")
def fractional_max_pool3d_backward(
    grad_output, self, kernel_size, output_size, indices
):
    return _at_indices(grad_output, self, indices, 3)


@composite("fractional_max_pool2d")
def fractional_max_pool2d(self, kernel_size, output_size, random_samples):
    return F.fractional_max_pool2d(
        self, kernel_size, output_size, None, True, random_samples
    )


@composite("fractional_max_pool3d")
def fractional_max_pool3d(self, kernel_size, output_size, random_samples):
    return F.fractional_max_pool3d(
        self, kernel_size, output_size, None, True, random_samples
    )


@composite("avg_pool2d_backward")
def avg_pool2d_backward(grad_output, self, kernel_size, stride, *rest):
    def pool(x):
        return F.avg_pool2d(x, kernel_size, stride or None, *rest)

    return gradients(pool, grad_output, self)[0]


@composite("avg_pool3d_backward")
def avg_pool3d_backward(grad_output, self, kernel_size, stride, *rest):
    def pool(x):
        return F.avg_pool3d(x, kernel_size, stride or None, *rest)

    return gradients(pool, grad_output, self)[0]


@composite("_adaptive_avg_pool2d_backward")
def _adaptive_avg_pool2d_backward(grad_output, self):
    size = tuple(grad_output.shape[-2:])
    return gradients(lambda x: F.adaptive_avg_pool2d(x, size), grad_output, self)[0]


@composite("_adaptive_avg_pool3d_backward")
def _adaptive_avg_pool3d_backward(grad_output, self):
    size = tuple(grad_output.shape[-3:])
    return gradients(lambda x: F.adaptive_avg_pool3d(x, size), grad_output, self)[0]
