# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What boolean masks choose: nonzero, masked_select, masked_scatter, ...

The sizes of most results depend on data. Such a result comes at once, as any
other; the client waits when somebody looks at its shape.
"""

from holdfast import _C
from holdfast._registry import accepts_out, both, overload
from holdfast.shapes import broadcast_shapes, reshape, unbind

_ops = _C.ops
Tensor = _C.Tensor


def _check_mask(mask, name):
    if mask.dtype is not _C.bool:
        raise RuntimeError(f"{name}: expected BoolTensor for mask, got {mask.dtype}")


def _spread(input, mask):
    """Both expanded to their common shape, of at least one dimension."""
    shape = tuple(broadcast_shapes(input.shape, mask.shape)) or (1,)
    return _ops.expand(input, shape), _ops.expand(mask, shape)


@overload("nonzero")
@accepts_out
def _nonzero(input, *, as_tuple=False, inplace_=False):
    if not as_tuple:
        return _ops.nonzero(input)
    if input.dim() == 0:
        return (reshape(_ops.nonzero(reshape(input, (1,))), (-1,)),)
    return unbind(_ops.nonzero(input), 1)


@both
def argwhere(input):
    """nonzero(): positions [n, rank] (int64) of the elements that are not zero."""
    return _ops.nonzero(input)


@both(out=True)
def masked_select(input, mask):
    """The elements where mask (bool, broadcast with input) is True; 1-D."""
    _check_mask(mask, "masked_select")
    input, mask = _spread(input, mask)
    result = _ops.index_mask(input, 0, mask)
    return _C.show_as(result, "MaskedSelectBackward0", input)


@both
def masked_scatter(input, mask, source):
    """Copy of input with source's elements, in order, where mask is True.

    mask is broadcast with input; source (of input's dtype) has at least as many
    elements as mask has True ones, or the next read raises.
    """
    _check_mask(mask, "masked_scatter")
    shape = broadcast_shapes(input.shape, mask.shape)
    input, mask = _spread(input, mask)
    flat = reshape(source, (-1,))
    return _ops.view(_ops.mask_put(input, 0, mask, flat, partial=True), shape)


def _masked_scatter_inplace(self, mask, source):
    """masked_scatter() in place."""
    _check_mask(mask, "masked_scatter_")
    target = self if self.dim() else _ops.view(self, (1,))
    mask = _ops.expand(mask, tuple(target.shape))
    _ops.mask_put_(target, 0, mask, reshape(source, (-1,)), partial=True)
    return self


Tensor.masked_scatter_ = _masked_scatter_inplace


@both(out=True)
def masked_fill(input, mask, value):
    """Copy of input with value (a number or 0-d tensor) where mask is True."""
    _check_mask(mask, "masked_fill")
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.dim()} dimension(s)."
        )
    result = _ops.to(_ops.where(mask, value, input), input.dtype)
    return _C.show_as(result, "MaskedFillBackward0", input)


def _masked_fill_inplace(self, mask, value):
    """masked_fill() in place."""
    _check_mask(mask, "masked_fill_")
    if not isinstance(value, Tensor):
        value = _ops.full((), value, dtype=self.dtype)
    elif value.dim():
        return self.copy_(masked_fill(self, mask, value))
    target = self if self.dim() else _ops.view(self, (1,))
    mask = _ops.expand(mask, tuple(target.shape))
    _ops.mask_put_(target, 0, mask, _ops.to(value, self.dtype))
    return self


Tensor.masked_fill_ = _masked_fill_inplace
