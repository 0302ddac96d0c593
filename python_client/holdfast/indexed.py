# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's further forms of gather, scatter and the index_* functions."""

import builtins

from holdfast import _C
from holdfast._registry import accepts_out, both, method, overload, reject
from holdfast.shapes import _wrap, stack

_ops = _C.ops
Tensor = _C.Tensor


@overload("scatter")
def _scatter(input, dim, index, src=None, *, value=None, reduce=None, inplace_=False):
    source = value if src is None else src
    if source is None:
        raise TypeError("scatter() missing required argument: 'src'")
    if reduce == "multiply":
        if not isinstance(source, Tensor):
            source = _ops.full(tuple(index.shape), source, dtype=input.dtype)
        return (Tensor.scatter_reduce_ if inplace_ else _ops.scatter_reduce)(
            input, dim, index, source, "prod"
        )
    if reduce == "add":
        if not isinstance(source, Tensor):
            source = _ops.full(tuple(index.shape), source, dtype=input.dtype)
        return (Tensor.scatter_add_ if inplace_ else _ops.scatter_add)(
            input, dim, index, source
        )
    if reduce is not None:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return (Tensor.scatter_ if inplace_ else _ops.scatter)(input, dim, index, source)


@overload("gather")
@accepts_out
def _gather(input, dim, index, *, sparse_grad=False, inplace_=False):
    reject("gather", sparse_grad=sparse_grad or None)
    return _ops.gather(input, dim, index)


@overload("index_add")
@accepts_out
def _index_add(input, dim, index, source, *, alpha=1, inplace_=False):
    scaled = source if alpha == 1 else source * alpha
    return (Tensor.index_add_ if inplace_ else _ops.index_add)(
        input, dim, index, scaled
    )


def _rows(name, input, dim, index, source=None):
    """dim and a 1-D index along it in the shape that scatter wants."""
    dim = _wrap(dim, input.dim())
    if index.dim() > 1:
        raise IndexError(f"{name}(): Index should have dimension 1 or 0")
    if source is not None and source.dim() == input.dim():
        for d in range(source.dim()):
            want = index.numel() if d == dim else input.size(d)
            if source.size(d) != want:
                raise IndexError(
                    f"{name}(): Source/destination tensor must have same slice shapes. "
                    f"Destination slice shape: {list(input.shape)} at dimension {dim} "
                    f"and source slice shape: {list(source.shape)} with "
                    f"{index.numel()} indices"
                )
    if input.dim() == 0:
        return dim, _ops.view(index, (-1,)) if index.dim() == 0 else index
    shape = list(input.shape)
    shape[dim] = index.numel()
    sizes = [1] * len(shape)
    sizes[dim] = -1
    return dim, _ops.expand(_ops.view(_ops.to(index, _C.int64), sizes), shape)


def _fill_rows(name, input, dim, index):
    dim, rows = _rows(name, input, dim, index)
    return dim, _from_start(rows, input.size(dim) if input.dim() else 1)


def _filled_rows(input, dim, rows, value):
    """The mask of the entries that index_fill() writes, and a value for them. An
    entry that is named twice has one gradient, so that scatter() would not do."""
    if value.dim():
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got "
            f"tensor with {value.dim()} dimension(s)."
        )
    none = _ops.full(tuple(input.shape), False, device=input.device)
    return _ops.scatter(none, dim, rows, True), _ops.to(value, input.dtype)


@both(out=True)
def index_copy(input, dim, index, source):
    """Copy of input with source's rows at index (1-D) along dim."""
    dim, rows = _rows("index_copy", input, dim, index, source)
    return _ops.scatter(input, dim, rows, source)


@method
def index_copy_(self, dim, index, source):
    """index_copy() in place."""
    dim, rows = _rows("index_copy_", self, dim, index, source)
    return Tensor.scatter_(self, dim, rows, source)


@both(out=True)
def index_fill(input, dim, index, value):
    """Copy of input with value (a number or 0-d tensor) at the rows of index, which
    count from the end below 0."""
    dim, rows = _fill_rows("index_fill", input, dim, index)
    if isinstance(value, Tensor):
        return input.masked_fill(*_filled_rows(input, dim, rows, value))
    return _ops.scatter(input, dim, rows, value)


@method
def index_fill_(self, dim, index, value):
    """index_fill() in place."""
    dim, rows = _fill_rows("index_fill_", self, dim, index)
    if isinstance(value, Tensor):
        return self.masked_fill_(*_filled_rows(self, dim, rows, value))
    return Tensor.scatter_(self, dim, rows, value)


@both(out=True)
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """Copy of input, its rows at index combined with source's.

    reduce: prod, mean, amax or amin.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "reduce argument must be either prod, mean, amax or amin, got " f"{reduce}."
        )
    dim, rows = _rows("index_reduce", input, dim, index, source)
    return _ops.scatter_reduce(
        input, dim, rows, source, reduce, include_self=include_self
    )


@method
def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """index_reduce() in place."""
    return self.copy_(
        index_reduce(self, dim, index, source, reduce, include_self=include_self)
    )


@both(out=True)
def take_along_dim(input, indices, dim=None):
    """gather() with the other dimensions broadcast; without dim over all elements.
    Indices below 0 count from the end."""
    if indices.dtype is not _C.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype}"
        )
    if dim is None:
        flat = input.reshape(-1)
        return _ops.gather(flat, 0, _from_start(indices.reshape(-1), flat.size(0)))
    if input.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {input.dim()} dimensions for input, and "
            f"{indices.dim()} dimensions for indices"
        )
    from holdfast.shapes import broadcast_shapes

    dim = _wrap(dim, input.dim())
    own, wanted = list(input.shape), list(indices.shape)
    own[dim] = wanted[dim] = 1
    shape = list(broadcast_shapes(own, wanted))
    own, wanted = list(shape), list(shape)
    own[dim], wanted[dim] = input.size(dim), indices.size(dim)
    indices = _from_start(indices, input.size(dim))
    return _ops.gather(_ops.expand(input, own), dim, _ops.expand(indices, wanted))


def _from_start(indices, size):
    return _ops.where(_ops.lt(indices, 0), indices + size, indices)


@both(out=True)
def nonzero_static(input, *, size, fill_value=-1):
    """The first `size` rows of nonzero(), int64 [size, rank], in order; rows of
    fill_value where there are fewer. The result's size does not wait for the data."""
    if size < 0:
        raise RuntimeError(
            f"nonzero_static: 'size' must be an non-negative integer. Got {size}."
        )
    count = input.numel()
    kept = _ops.to(_ops.ne(input.reshape(-1), 0), _C.int64)
    place = _ops.cumsum(kept, 0) - 1
    # What is no row, or one too many, goes into the row behind the last.
    used = _ops.logical_and(_ops.ne(kept, 0), _ops.lt(place, size))
    rows = _ops.full((size + 1,), -1, dtype=_C.int64, device=input.device)
    if count:
        source = _ops.arange(0, count, device=input.device)
        rows = _ops.scatter(rows, 0, _ops.where(used, place, size), source)
    rows = _ops.slice(rows, 0, 0, size)
    size_now = (size, input.dim())
    result = _ops.full(size_now, fill_value, dtype=_C.int64, device=input.device)
    columns, step = [], 1
    for length in reversed(input.shape):
        step_now, step = step, step * builtins.max(length, 1)
        columns.append(_ops.floor_divide(rows, step_now) % builtins.max(length, 1))
    if not columns:
        return result
    found = _ops.ge(rows, 0).unsqueeze(-1)
    return _ops.where(found, stack(columns[::-1], -1), result)
