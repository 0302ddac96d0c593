# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Views that strides describe, in-place changes of shape, writing into parts."""

import builtins

from holdfast import _C
from holdfast._registry import both, inplace_of, method
from holdfast.indexed import index_copy
from holdfast.shapes import _sizes, _swap, _wrap, reshape, t

_ops = _C.ops
Tensor = _C.Tensor


@both
def diagonal(input, offset=0, dim1=0, dim2=1):
    """View of the diagonals of dim1 and dim2, which become the last dimension."""
    rank = input.dim()
    dim1, dim2 = _wrap(dim1, rank), _wrap(dim2, rank)
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.size(dim1), input.size(dim2)
    down, right = input.stride(dim1), input.stride(dim2)
    if offset >= 0:
        size, skip = builtins.min(rows, columns - offset), offset * right
    else:
        size, skip = builtins.min(rows + offset, columns), -offset * down
    size = builtins.max(size, 0)
    others = [d for d in range(rank) if d not in (dim1, dim2)]
    return _ops.as_strided(
        input,
        [input.size(d) for d in others] + [size],
        [input.stride(d) for d in others] + [down + right],
        input.storage_offset() + (skip if size else 0),
    )


@method
def unfold(self, dimension, size, step):
    """View of all windows of `size` entries along dimension, `step` apart.

    Their number takes dimension's place; a window's entries are the last dimension.
    """
    rank = self.dim()
    dim = _wrap(dimension, rank)
    length = self.size(dim) if rank else 1
    if not 0 <= size <= length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if rank == 0:
        return _ops.as_strided(self, (size,), (1,), self.storage_offset())
    shape, stride = list(self.shape), list(self.stride())
    shape[dim] = (length - size) // step + 1
    shape.append(size)
    stride.append(stride[dim])
    stride[dim] *= step
    return _ops.as_strided(self, shape, stride, self.storage_offset())


# ---- in place: another shape for the same object


def _reshaper(name, view, doc):
    def inplace(self, *args, **kwargs):
        if self.requires_grad and self.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place "
                f"operation ({name})."
            )
        return self._become(view(self, *args, **kwargs))

    inplace.__name__ = inplace.__qualname__ = name
    inplace.__doc__ = doc
    setattr(Tensor, name, inplace)


_reshaper("squeeze_", Tensor.squeeze, "squeeze() in place.")
_reshaper("unsqueeze_", Tensor.unsqueeze, "unsqueeze() in place.")
_reshaper("transpose_", Tensor.transpose, "transpose() in place.")
_reshaper("swapaxes_", _swap, "transpose() in place.")
_reshaper("swapdims_", _swap, "transpose() in place.")
_reshaper("t_", t, "t() in place.")
_reshaper("as_strided_", Tensor.as_strided, "as_strided() in place.")


@method
def resize_(self, *sizes, memory_format=None):
    """Another size in place: the first elements stay, further ones are undefined."""
    sizes = tuple(_sizes(sizes))
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    count = 1
    for size in sizes:
        if size < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {size}: {list(sizes)}"
            )
        count *= size
    if count <= self.numel() and self.is_contiguous():
        flat = _ops.slice(_ops.view(self, (-1,)), 0, 0, count)
        return self._become(_ops.view(flat, sizes))
    fresh = _ops.empty((count,), dtype=self.dtype, device=self.device)
    kept = builtins.min(count, self.numel())
    source = _ops.slice(reshape(self, (-1,)), 0, 0, kept)
    _ops.slice(fresh, 0, 0, kept).copy_(source)
    return self._become(_ops.view(fresh, sizes))


@both
def resize_as_(self, the_template, *, memory_format=None):
    """resize_() to the size of another tensor."""
    return resize_(self, *the_template.shape)


# ---- copies with another tensor in a part


def _expect_shape(name, src, part):
    if tuple(src.shape) != tuple(part.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the {name} of self. src size = "
            f"{list(src.shape)}, {name} size = {list(part.shape)}"
        )


@both
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """Copy of input with src in input[start:end:step] along dim."""
    dim = _wrap(dim, input.dim())
    _expect_shape("slice", src, _ops.slice(input, dim, start, end, step))
    first = range(*slice(start, end, step).indices(input.size(dim)))
    index = _ops.arange(first.start, first.start + len(first) * step, step)
    return index_copy(input, dim, _ops.to(index, _C.int64), src)


@both
def select_scatter(input, src, dim, index):
    """Copy of input with src in input.select(dim, index)."""
    dim = _wrap(dim, input.dim())
    _expect_shape("slice", src, _ops.select(input, dim, index))
    index += input.size(dim) if index < 0 else 0
    at = _ops.full((1,), index, dtype=_C.int64)
    return index_copy(input, dim, at, _ops.unsqueeze(src, dim))


@both
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """Copy of input with src in input.diagonal(offset, dim1, dim2)."""
    shape = tuple(input.shape)
    places = _ops.arange(0, input.numel())
    places = diagonal(_ops.view(places, shape), offset, dim1, dim2)
    _expect_shape("diagonal", src, places)
    flat = reshape(input, (-1,))
    return _ops.view(_ops.index_put((flat, src, places), (0,)), shape)


def _tril(input, diagonal=0):
    return _ops.tril(input, diagonal)


def _triu(input, diagonal=0):
    return _ops.triu(input, diagonal)


inplace_of(_tril, "tril")
inplace_of(_triu, "triu")
