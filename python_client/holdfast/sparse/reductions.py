# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sums and softmax of sparse tensors."""

import math

import holdfast
from holdfast import _C
from holdfast.sparse.coo_tensor import SparseTensor, sparse_method


def selection(index, size, dtype):
    """The matrix that picks the rows `index` out of `size`."""
    count = index.numel()
    rows = holdfast.arange(0, count, 1)
    return SparseTensor(
        holdfast.stack([rows, index]),
        holdfast.full((count,), 1, dtype=dtype),
        (count, size),
    )


def sum(input, dim=None, dtype=None):
    """Sum of all elements (dense), or over dims: sparse while a sparse dimension is
    left, else dense."""
    values = input._value if dtype is None else _C.ops.to(input._value, dtype)
    if dim is None:
        return holdfast.sum(values)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    dims = {d % input.dim() for d in dims}
    rank = input.sparse_dim()
    dense = [d - rank + 1 for d in dims if d >= rank]
    values = holdfast.sum(values, dense) if dense else values
    kept = [d for d in range(rank) if d not in dims]
    if not kept:
        return holdfast.sum(values, 0)
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    index = holdfast.index_select(input._index, 0, _C.tensor(kept))
    same = len(kept) == rank
    made = SparseTensor(index, values, size, same and input._coalesced)
    return made.coalesce()


@sparse_method(names=("sum",))
def _sum(self, dim=None, keepdim=False, *, dtype=None):
    result = sum(self, dim, dtype)
    if keepdim and dim is not None:
        for d in sorted({dim % self.dim()} if isinstance(dim, int) else set(dim)):
            result = result.unsqueeze(d)
    return result


@sparse_method
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    """The norm of all elements."""
    if dim is not None:
        raise RuntimeError("norm: sparse tensors have the norm of all elements only")
    return self.coalesce()._value.norm(2 if p == "fro" else p)


def log_softmax(input, dim, *, dtype=None):
    """log(softmax()): over the elements that are there; the others are -inf, and
    absent."""
    own = input.coalesce()
    values = own._value if dtype is None else _C.ops.to(own._value, dtype)
    dim %= own.dim()
    if dim >= own.sparse_dim():
        return own._with(holdfast.log_softmax(values, dim - own.sparse_dim() + 1))
    group, count = _groups(own, dim)
    shape = (-1,) + (1,) * (values.dim() - 1)
    wide = _C.ops.expand(_C.ops.view(group, shape), tuple(values.shape))
    size = (count, *values.shape[1:])
    low = holdfast.full(size, -math.inf, dtype=values.dtype)
    top = holdfast.scatter_reduce(low, 0, wide, values.detach(), "amax")
    shifted = values - holdfast.index_select(top, 0, group)
    zeros = holdfast.full(size, 0, dtype=values.dtype)
    total = holdfast.index_add(zeros, 0, group, holdfast.exp(shifted))
    return own._with(shifted - holdfast.index_select(holdfast.log(total), 0, group))


def softmax(input, dim, *, dtype=None):
    """Softmax along dim over the elements that are there."""
    logs = log_softmax(input, dim, dtype=dtype)
    return logs._with(holdfast.exp(logs._value))


sparse_method(softmax)
sparse_method(log_softmax)


def _groups(input, dim):
    """Which elements differ in dim only: a number of their own for each, and how
    many there are."""
    flat, count = None, 1
    for d in range(input.sparse_dim()):
        if d == dim:
            continue
        row = holdfast.select(input._index, 0, d)
        flat = row if flat is None else flat * input.shape[d] + row
        count *= input.shape[d]
    if flat is None:
        flat = holdfast.full((input._nnz(),), 0, dtype=_C.int64)
    return flat, count
