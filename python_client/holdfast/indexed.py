# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's further forms of gather, scatter and the index_* functions."""

from holdfast import _C
from holdfast._registry import both, overload, reject

_ops = _C.ops
Tensor = _C.Tensor


@overload("scatter")
def _scatter(input, dim, index, src=None, *, value=None, reduce=None, inplace_=False):
    source = value if src is None else src
    if source is None:
        raise TypeError("scatter() missing required argument: 'src'")
    if reduce == "add":
        if not isinstance(source, Tensor):
            source = _ops.full(tuple(index.shape), source, dtype=input.dtype)
        return (Tensor.scatter_add_ if inplace_ else _ops.scatter_add)(
            input, dim, index, source
        )
    reject("scatter", reduce=reduce)
    return (Tensor.scatter_ if inplace_ else _ops.scatter)(input, dim, index, source)


@overload("gather")
def _gather(input, dim, index, *, sparse_grad=False, out=None, inplace_=False):
    reject("gather", out=out, sparse_grad=sparse_grad or None)
    return _ops.gather(input, dim, index)


@overload("index_add")
def _index_add(input, dim, index, source, *, alpha=1, out=None, inplace_=False):
    reject("index_add", out=out)
    scaled = source if alpha == 1 else source * alpha
    return (Tensor.index_add_ if inplace_ else _ops.index_add)(
        input, dim, index, scaled
    )


def _rows(input, dim, index):
    """A 1-D index along dim in the shape that scatter wants."""
    shape = list(input.shape)
    shape[dim] = index.numel()
    sizes = [1] * len(shape)
    sizes[dim] = -1
    return _ops.expand(_ops.view(index, sizes), shape)


@both
def index_copy(input, dim, index, source):
    """Copy of input with source's rows at index along dim."""
    dim %= max(input.dim(), 1)
    return _ops.scatter(input, dim, _rows(input, dim, index), source)


@both
def index_fill(input, dim, index, value):
    """Copy of input with value at the rows of index along dim."""
    dim %= max(input.dim(), 1)
    if isinstance(value, Tensor):
        value = value.item()
    return _ops.scatter(input, dim, _rows(input, dim, index), value)


def _index_copy_inplace(self, dim, index, source):
    """index_copy() in place."""
    dim %= max(self.dim(), 1)
    return Tensor.scatter_(self, dim, _rows(self, dim, index), source)


def _index_fill_inplace(self, dim, index, value):
    """index_fill() in place."""
    dim %= max(self.dim(), 1)
    return Tensor.scatter_(self, dim, _rows(self, dim, index), value)


Tensor.index_copy_ = _index_copy_inplace
Tensor.index_fill_ = _index_fill_inplace


@both
def take_along_dim(input, indices, dim=None):
    """gather() with a broadcast index; without dim over all elements."""
    if dim is None:
        return _ops.gather(input.reshape(-1), 0, indices.reshape(-1))
    shape = list(input.shape)
    shape[dim] = indices.size(dim)
    return _ops.gather(input, dim, _ops.expand(indices, shape))


@both
def take(input, index):
    """Elements at positions counted over all elements."""
    flat = _ops.index_select(input.reshape(-1), 0, index.reshape(-1))
    return _ops.view(flat, tuple(index.shape))
