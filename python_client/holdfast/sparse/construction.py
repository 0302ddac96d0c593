# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Making sparse tensors: of indices and values, or of a dense tensor."""

import math

import holdfast
from holdfast import _C
from holdfast.errors import UnsupportedError
from holdfast.memory_formats import sparse_coo
from holdfast.sparse.coo_tensor import SparseTensor


def sparse_coo_tensor(
    indices,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse tensor: `indices` [sparse_dim, nnz], `values` [nnz, ...].

    Without `size` the smallest that holds the indices. Waits, to check the indices
    (RuntimeError). `sparse_coo_tensor(size)` has no elements. Gradients reach
    `values`.
    """
    if values is None:
        size = tuple(indices if size is None else size)
        indices = holdfast.full((len(size), 0), 0, dtype=_C.int64)
        values = holdfast.full((0,), 0, dtype=dtype)
        return SparseTensor(indices, values, size, True).requires_grad_(requires_grad)
    indices = _C.as_tensor(indices, device=device)
    if indices.numel() == 0 and indices.is_floating_point():
        indices = _C.ops.to(indices, _C.int64)
    if indices.is_floating_point() or indices.dtype is _C.bool:
        raise TypeError(f"indices must be an int64 tensor. Got {indices.dtype}.")
    indices = _C.ops.to(indices, _C.int64)
    values = _C.as_tensor(values, dtype=dtype, device=device)
    _check_parts(indices, values)
    sparse_dim, dense = indices.size(0), tuple(values.shape[1:])
    if size is None:
        if indices.size(1) == 0:
            size = (0,) * sparse_dim + dense
        else:
            size = (*(n + 1 for n in indices.max(1).values.tolist()), *dense)
    size = tuple(size)
    _check_size(indices, dense, size)
    made = SparseTensor(indices, values, size, bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


def _check_parts(indices, values):
    if indices.dim() != 2:
        raise RuntimeError(
            "indices must be sparse_dim x nnz, but got: " f"{list(indices.shape)}"
        )
    if values.dim() < 1 or values.size(0) != indices.size(1):
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.size(1)}, nnz from values: {list(values.shape)}"
        )


def _check_size(indices, dense, size):
    sparse_dim = indices.size(0)
    if len(size) != sparse_dim + len(dense) or size[sparse_dim:] != dense:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim "
            f"({len(dense)}), and values must have size {list(size[sparse_dim:])}. Got "
            f"size {list(size)} and values of {list(dense)} each."
        )
    if indices.size(1) == 0 or sparse_dim == 0:
        return
    low, high = holdfast.amin(indices, 1).tolist(), holdfast.amax(indices, 1).tolist()
    for d, (least, most) in enumerate(zip(low, high)):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {d}")
        if most >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} "
                f"but found index {most}"
            )


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """A sparse tensor of the elements that are not zero, or, with `sparse_dim`, of
    the blocks over the further dimensions that are not."""
    if layout not in (None, sparse_coo):
        raise UnsupportedError(f"holdfast has no layout {layout}, only sparse_coo.")
    rank = self.dim()
    sparse_dim = rank if sparse_dim is None else sparse_dim
    if not 0 < sparse_dim <= rank and rank:
        raise RuntimeError(
            f"sparse_dim argument must be in [1,{rank}], but got: {sparse_dim}"
        )
    shape = tuple(self.shape)
    rows = math.prod(shape[:sparse_dim])
    flat = self.reshape(rows, -1)
    kept = holdfast.any(holdfast.ne(flat.detach(), 0), 1)
    place = holdfast.nonzero(kept).view(-1)
    values = holdfast.index_select(self.reshape(rows, *shape[sparse_dim:]), 0, place)
    index = []
    for size in reversed(shape[:sparse_dim]):
        index.append(holdfast.remainder(place, size))
        place = holdfast.floor_divide(place, size)
    return SparseTensor(holdfast.stack(index[::-1]), values, shape, True)
