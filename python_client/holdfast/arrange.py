# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Diagonals as matrices, turning, stacking, splitting, combining."""

import builtins

from holdfast import _C
from holdfast._registry import both, function
from holdfast.creation import meshgrid
from holdfast.shapes import (
    _wrap,
    repeat_interleave,
    reshape,
    split,
    stack,
    tensor_split,
)
from holdfast.views import diagonal

_ops = _C.ops
Tensor = _C.Tensor


# ---- diagonals


@both(out=True)
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices (over dim1 and dim2) with input's last dimension on a diagonal."""
    rank = input.dim() + 1
    first, second = _wrap(dim1, rank), _wrap(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    count = input.size(-1)
    size = count + builtins.abs(offset)
    shape = (*input.shape[:-1], size, size)
    result = _ops.full(shape, 0, dtype=input.dtype, device=input.device)
    down, right = builtins.max(-offset, 0), builtins.max(offset, 0)
    rows = _ops.arange(down, down + count)
    columns = _ops.arange(right, right + count)
    _ops.index_put_((result, input, rows, columns), (rank - 2, rank - 1))
    where = {first: rank - 2, second: rank - 1}
    rest = iter(range(rank - 2))
    return _ops.permute(
        result, [where[d] if d in where else next(rest) for d in range(rank)]
    )


@both
def diagflat(input, offset=0):
    """A matrix with all of input's elements on a diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@both(out=True)
def diag(input, diagonal=0):
    """A vector's diagonal matrix; a matrix's diagonal (a copy)."""
    if input.dim() == 1:
        return diag_embed(input, diagonal)
    if input.dim() == 2:
        result = _ops.clone(_diagonal(input, diagonal))
        return _C.show_as(result, "DiagBackward0", input)
    raise RuntimeError(f"matrix or a vector expected, got {input.dim()}D")


_diagonal = diagonal


@function
def block_diag(*tensors):
    """Matrices (vectors and scalars as one row) along a diagonal, zeros elsewhere."""
    blocks = []
    for i, tensor in enumerate(tensors):
        if tensor.dim() > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {tensor.dim()} dimensions"
            )
        blocks.append(atleast_2d(tensor))
    if not blocks:
        return _ops.empty((1, 0), dtype=_C.default_dtype())
    width = builtins.sum(block.size(1) for block in blocks)
    rows, left = [], 0
    for block in blocks:
        right = width - left - block.size(1)
        rows.append(_ops.constant_pad(block, (left, right)))
        left += block.size(1)
    return _ops.cat(rows, 0)


def _checked_offset(row, col, offset):
    """No further than where nothing changes any more."""
    if row < 0 or col < 0:
        raise RuntimeError(
            f"{'row' if row < 0 else 'col'} must be non-negative, got "
            f"{row if row < 0 else col}"
        )
    return max(min(offset, col), -row)


_MANY = 1 << 24


def _positions(rows, left, counts, total, dtype):
    """Of counts[i] neighbours from column left[i] on, in rows[i]."""
    positions = _ops.empty((2, total), dtype=_C.int64)
    if total > _MANY:  # refused before anything is computed, if there is no room
        _ops.select(positions, 1, 0)[0].item()
    before = _ops.cumsum(counts, 0) - counts
    first = repeat_interleave(left - before, counts, output_size=total)
    _ops.select(positions, 0, 0).copy_(
        repeat_interleave(rows, counts, output_size=total)
    )
    _ops.select(positions, 0, 1).copy_(first + _ops.arange(0, total))
    return positions if dtype is None else _ops.to(positions, dtype)


@function(out=True)
def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Positions [2, n] of the lower triangle of a row x col matrix."""
    offset = _checked_offset(row, col, offset)
    # Rows that have any; those from `full` on have all columns.
    first = min(max(-offset, 0), row) if col else row
    full = min(max(col - offset - 1, first), row)
    partial = full - first
    total = partial * (first + full + 2 * offset + 1) // 2 + (row - full) * col
    rows = _ops.arange(first, row)
    counts = _ops.clamp(rows + offset + 1, max=col)
    return _positions(rows, _ops.mul(rows, 0), counts, total, dtype)


@function(out=True)
def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Positions [2, n] of the upper triangle of a row x col matrix."""
    offset = _checked_offset(row, col, offset)
    # Rows that have any; those before `partial` have all columns.
    end = min(max(col - offset, 0), row)
    partial = min(max(-offset, 0), end)
    lacking = (end - partial) * (partial + end - 1 + 2 * offset) // 2
    rows = _ops.arange(0, end)
    left = _ops.clamp(rows + offset, min=0)
    return _positions(rows, left, col - left, end * col - lacking, dtype)


# ---- turning


@both(out=True)
def rot90(input, k=1, dims=(0, 1)):
    """Turned by k quarters in the plane of dims, from the first to the second."""
    if len(dims) != 2:
        raise RuntimeError(
            f"expected total rotation dims == 2, but got dims = {len(dims)}"
        )
    if input.dim() < 2:
        raise RuntimeError(
            f"expected total dims >= 2, but got total dims = {input.dim()}"
        )
    a, b = (_wrap(d, input.dim()) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and "
            f"dim1 = {dims[1]}"
        )
    k %= 4
    if k == 0:
        return _ops.clone(input)
    if k == 2:
        return _ops.flip(input, (a, b))
    if k == 1:
        return _ops.transpose(_ops.flip(input, (b,)), a, b)
    return _ops.flip(_ops.transpose(input, a, b), (b,))


# ---- ranks


def _each(f, tensors):
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return f(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0])
    return tuple(f(tensor) for tensor in tensors)


@both
def atleast_1d(*tensors):
    """Each tensor with at least one dimension."""
    return _each(lambda x: x if x.dim() else _ops.view(x, (1,)), tensors)


@both
def atleast_2d(*tensors):
    """Each tensor with at least two dimensions; a vector becomes a row."""
    return _each(lambda x: x if x.dim() > 1 else reshape(x, (1, x.numel())), tensors)


@both
def atleast_3d(*tensors):
    """Each tensor with at least three dimensions; a vector of n becomes [1, n, 1]."""

    def widen(x):
        if x.dim() > 2:
            return x
        if x.dim() == 2:
            return _ops.unsqueeze(x, 2)
        return reshape(x, (1, x.numel(), 1))

    return _each(widen, tensors)


# ---- stacking and splitting


@function(out=True)
def dstack(tensors):
    """Joined along the third dimension."""
    return _ops.cat([atleast_3d(x) for x in tensors], 2)


@function(out=True)
def column_stack(tensors):
    """Joined along dimension 1; vectors and scalars become columns."""
    columns = [reshape(x, (x.numel(), 1)) if x.dim() < 2 else x for x in tensors]
    return _ops.cat(columns, 1)


@both
def split_with_sizes(input, split_sizes, dim=0):
    """Views of the given sizes along dim."""
    return split(input, list(split_sizes), dim)


def _split_evenly(name, input, indices_or_sections, dim):
    sections = indices_or_sections
    if isinstance(sections, builtins.int):
        size = input.size(dim)
        if sections <= 0 or size % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size "
                f"of the dimension {size} is not divisible by the split_size "
                f"{sections}!"
            )
    return tensor_split(input, sections, dim)


def _require_rank(name, input, rank):
    if input.dim() < rank:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {rank} dimension, but got a "
            f"tensor with {input.dim()} dimensions!"
        )


@both
def hsplit(input, indices_or_sections):
    """tensor_split() along columns (all of a vector)."""
    _require_rank("hsplit", input, 1)
    dim = 0 if input.dim() == 1 else 1
    return _split_evenly("hsplit", input, indices_or_sections, dim)


@both
def vsplit(input, indices_or_sections):
    """tensor_split() along rows."""
    _require_rank("vsplit", input, 2)
    return _split_evenly("vsplit", input, indices_or_sections, 0)


@both
def dsplit(input, indices_or_sections):
    """tensor_split() along the third dimension."""
    _require_rank("dsplit", input, 3)
    return _split_evenly("dsplit", input, indices_or_sections, 2)


# ---- combining


@function
def cartesian_prod(*tensors):
    """Rows of all combinations of the vectors' elements; one vector as it is."""
    for tensor in tensors:
        if tensor.dim() != 1:
            raise RuntimeError(
                "Expect a 1D vector, but got shape " f"{list(tensor.shape)}"
            )
    if len(tensors) == 1:
        return tensors[0]
    return reshape(stack(meshgrid(*tensors, indexing="ij"), -1), (-1, len(tensors)))


# A dimension for each, while they are chosen.
_MOST_TOGETHER = 31


@both
def combinations(input, r=2, with_replacement=False):
    """Rows of all combinations of r of a vector's elements, in its order."""
    if input.dim() != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " f"{list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return _ops.slice(input, 0, 0, 0)
    if r == 1:
        return _ops.unsqueeze(input, 1)
    count = input.numel()
    if count < (1 if with_replacement else r):
        return _ops.slice(input, 0, 0, 0).reshape(0, r)
    if r > _MOST_TOGETHER:
        raise RuntimeError(
            f"combinations() takes at most {_MOST_TOGETHER} elements together. "
            f"Got r={r} of {count}."
        )
    order = _ops.le if with_replacement else _ops.lt
    at = meshgrid(*[_ops.arange(0, input.numel())] * r, indexing="ij")
    mask = order(at[0], at[1])
    for low, high in zip(at[1:], at[2:]):
        mask = _ops.logical_and(mask, order(low, high))
    values = stack(meshgrid(*[input] * r, indexing="ij"), -1)
    return _ops.index_mask(values, 0, mask)


@function(names=("_chunk_cat",))
def _chunk_cat(tensors, dim, num_chunks, *, out=None):
    """Each tensor cut into num_chunks along dim, the last ones padded with zeros, and
    the tensors' first chunks joined, their second ones, ...: [*, num_chunks, n], the
    sizes before dim being the same of all."""
    if not tensors or num_chunks < 1:
        raise RuntimeError(
            "_chunk_cat expects a non-empty list of tensors and num_chunks >= 1. Got "
            f"{len(tensors)} tensors, num_chunks={num_chunks}."
        )
    dim = _wrap(dim, tensors[0].dim())
    lead = tuple(tensors[0].shape[:dim])
    rows = []
    for tensor in tensors:
        if tuple(tensor.shape[:dim]) != lead or tensor.numel() == 0:
            raise RuntimeError(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all "
                f"tensors, none of which is empty. Got {list(tensor.shape)} and "
                f"{list(tensors[0].shape)} at dim={dim}."
            )
        length = -(-tensor.size(dim) // num_chunks) * num_chunks
        after = (0, 0) * (tensor.dim() - dim - 1)
        padded = _ops.constant_pad(tensor, (*after, 0, length - tensor.size(dim)), 0)
        rows.append(padded.reshape(*lead, num_chunks, -1))
    result = _ops.cat(rows, -1)
    return result if out is None else _C.store_out(out, result)
