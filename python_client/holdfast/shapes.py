# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shapes: views in other forms, splitting, joining, repeating."""

import builtins
import math

from holdfast import _C
from holdfast._registry import both, function, method, overload

_ops = _C.ops


def _sizes(size):
    if len(size) == 1 and not isinstance(size[0], builtins.int):
        return tuple(size[0])
    return size


def _wrap(dim, rank):
    """A dimension as 0 .. rank-1; PyTorch's error otherwise."""
    limit = max(rank, 1)
    if not -limit <= dim < limit:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, "
            f"{limit - 1}], but got {dim})"
        )
    return dim % limit


@method(names=("reshape",))
def _reshape_method(self, *sizes, shape=None):
    """Same elements in another shape; a view where that is possible."""
    return reshape(self, _sizes(sizes) if shape is None else shape)


@function
def reshape(input, shape):
    """Same elements in another shape; a view where that is possible."""
    if input.is_contiguous():
        return _ops.view(input, shape)
    try:
        return _ops.view(input, shape)
    except RuntimeError:
        # The strides allow no view, or the sizes do not fit: then this says so.
        return _ops.view(input.contiguous(), shape)


@both
def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions start_dim to end_dim merged into one."""
    rank = input.dim()
    if rank == 0:
        return _ops.view(input, (1,))
    start, end = _wrap(start_dim, rank), _wrap(end_dim, rank)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after")
    if start == end:
        return input
    shape = tuple(input.shape)
    return reshape(
        input, shape[:start] + (math.prod(shape[start : end + 1]),) + shape[end + 1 :]
    )


@both
def unflatten(input, dim, sizes):
    """One dimension split into sizes."""
    dim = _wrap(dim, input.dim())
    shape = tuple(input.shape)
    return reshape(input, shape[:dim] + tuple(sizes) + shape[dim + 1 :])


@both
def ravel(input):
    """All elements in one dimension."""
    return reshape(input, (-1,))


@both
def t(input):
    """Transpose of a matrix; 0-d and 1-d tensors as they are."""
    rank = input.dim()
    if rank > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {rank}D"
        )
    if rank < 2:
        return input
    return _C.show_as(_ops.transpose(input, 0, 1), "TBackward0", input)


def _reverse_dims(self):
    return _ops.permute(self, tuple(range(self.dim()))[::-1])


def _matrix_transpose(self):
    if self.dim() == 0:
        return self
    if self.dim() == 1:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got 1-D "
            "tensor."
        )
    return _ops.transpose(self, -2, -1)


_C.Tensor.T = property(_reverse_dims, doc="Dimensions reversed.")
_C.Tensor.mT = property(_matrix_transpose, doc="Last two dimensions swapped.")


@both(names=("moveaxis",))
def movedim(input, source, destination):
    """Dimensions moved to other places, the rest in order."""
    rank = input.dim()
    if isinstance(source, builtins.int):
        source, destination = (source,), (destination,)
    source = [_wrap(d, rank) for d in source]
    destination = [_wrap(d, rank) for d in destination]
    order = [d for d in range(rank) if d not in source]
    for to, origin in sorted(zip(destination, source)):
        order.insert(to, origin)
    return _ops.permute(input, order)


@both(names=("swapaxes", "swapdims"))
def _swap(input, axis0=None, axis1=None, *, dim0=None, dim1=None):
    """Two dimensions swapped."""
    first, second = (axis0, axis1) if dim0 is None else (dim0, dim1)
    return _ops.transpose(input, first, second)


@both
def narrow(input, dim, start, length):
    """length entries along dim from start on."""
    size = input.size(dim)
    start = int(start)
    if not -size <= start <= size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, "
            f"{size}], but got {start})"
        )
    start += size if start < 0 else 0
    if length < 0 or start + length > size:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({size})."
        )
    return _ops.slice(input, dim, start, start + length)


@both(out=True)
def narrow_copy(input, dim, start, length):
    """narrow(), copied."""
    return _ops.clone(narrow(input, dim, start, length))


@method(names=("split",))
def _split_method(self, split_size, dim=0):
    """split(); as a method PyTorch names the argument otherwise."""
    return split(self, split_size, dim)


def _shown(views, node, input):
    """The views as a tuple; where recorded, they are shown as one function's."""
    if input.requires_grad:
        for view in views:
            _C.show_as(view, node, input)
    return tuple(views)


# A tuple of more views would fill the client's memory, and take minutes.
_MOST_VIEWS = 1 << 24


def _require_views(name, input, dim, count):
    if count > _MOST_VIEWS:
        raise RuntimeError(
            f"{name}() makes at most {_MOST_VIEWS} views. Got {count} of dimension "
            f"{dim} of {list(input.shape)}."
        )


@function
def split(tensor, split_size_or_sections, dim=0):
    """Views of split_size entries each along dim, or of the given sizes."""
    size = tensor.size(dim)
    sections = split_size_or_sections
    if isinstance(sections, builtins.int):
        if sections < 0 or (sections == 0 and size):
            raise RuntimeError(
                f"split expects split_size be non-negative, but got {sections}"
            )
        step = max(sections, 1)
        _require_views("split", tensor, dim, -(-size // step))
        bounds = [(i, min(i + step, size)) for i in range(0, max(size, 1), step)]
    else:
        if sum(sections) != size:
            raise RuntimeError(
                "split_with_sizes expects split_sizes to sum exactly to "
                f"{size} (input tensor's size at dimension {dim}), but got "
                f"split_sizes={list(sections)}"
            )
        bounds, start = [], 0
        for length in sections:
            bounds.append((start, start + length))
            start += length
    return _shown(
        [_ops.slice(tensor, dim, a, b) for a, b in bounds], "SplitBackward0", tensor
    )


@both
def chunk(input, chunks, dim=0):
    """At most `chunks` views of equal size along dim (the last may be less)."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got {chunks}")
    size = input.size(dim)
    return split(input, max(-(-size // chunks), 1), dim)


@both
def tensor_split(
    input, indices_or_sections=None, dim=0, *, indices=None, sections=None
):
    """Views along dim: so many nearly equal ones, or cut at the indices."""
    size = input.size(dim)
    given = [c for c in (indices_or_sections, indices, sections) if c is not None]
    if len(given) != 1:
        raise TypeError("tensor_split() takes either sections or indices")
    (cuts,) = given
    if isinstance(cuts, _C.Tensor):
        cuts = cuts.tolist()
    if isinstance(cuts, builtins.int) and cuts <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
    if isinstance(cuts, builtins.int):
        _require_views("tensor_split", input, dim, cuts)
        small, extra = divmod(size, cuts)
        cuts = [i * small + min(i, extra) for i in range(1, cuts)]
    edges = [0, *cuts, size]
    return tuple(_ops.slice(input, dim, a, b) for a, b in zip(edges, edges[1:]))


@both
def unbind(input, dim=0):
    """Tuple of the slices along dim, which disappears."""
    if input.dim() == 0:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    _require_views("unbind", input, dim, input.size(dim))
    return _shown(
        [_ops.select(input, dim, i) for i in range(input.size(dim))],
        "UnbindBackward0",
        input,
    )


@function(out=True)
def stack(tensors, dim=0, *, axis=None):
    """Tensors of one shape joined along a new dimension."""
    dim = dim if axis is None else axis
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    dim = _wrap(dim, tensors[0].dim() + 1)
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        if tensor.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} "
                f"at entry 0 and {list(tensor.shape)} at entry {i}"
            )
    if dim < len(first) and _C.is_grad_enabled():
        # Two ops in the place of one per tensor and one. (Under no_grad a view would
        # be a result that nobody may write inside the graph.)
        sizes = (*first[:dim], len(tensors), *first[dim:])
        result = _ops.view(_ops.cat(tensors, dim), sizes)
        return _C.show_as(result, "StackBackward0", *tensors)
    result = _ops.cat([_ops.unsqueeze(x, dim) for x in tensors], dim)
    return _C.show_as(result, "StackBackward0", *tensors)


@function(names=("concat", "concatenate"), out=True)
def _concat(tensors, dim=0, *, axis=None):
    """Tensors joined along dim."""
    return _ops.cat(tuple(tensors), dim if axis is None else axis)


@function(out=True)
def hstack(tensors):
    """Joined along dimension 1 (0 for 1-d tensors)."""
    tensors = [x if x.dim() else _ops.view(x, (1,)) for x in tensors]
    return _ops.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


@function(names=("row_stack",), out=True)
def vstack(tensors):
    """Joined along dimension 0; 1-d tensors become rows."""
    return _ops.cat([_at_least_2d(x) for x in tensors], 0)


def _at_least_2d(x):
    return _ops.view(x, (1, -1)) if x.dim() < 2 else x


@both
def repeat(input, *sizes, repeats=None):
    """Copies side by side, so many along each dimension."""
    sizes = _sizes(sizes if repeats is None else (repeats,))
    extra = len(sizes) - input.dim()
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    shape = (1,) * extra + tuple(input.shape)
    # Each size s repeated n times is an expanded (n, s), then merged.
    split_shape = [n for s in shape for n in (1, s)]
    wide = [n for r, s in zip(sizes, shape) for n in (r, s)]
    expanded = _ops.expand(_ops.view(input, split_shape), wide)
    result = _merged_copy(expanded, [r * s for r, s in zip(sizes, shape)])
    return _C.show_as(result, "RepeatBackward0", input)


def _merged_copy(input, shape):
    """In another shape, in memory of its own: programs write to what they repeated."""
    copy = _ops.clone(input) if input.is_contiguous() else input.contiguous()
    return _ops.view(copy, shape)


@both
def tile(input, *sizes, dims=None):
    """repeat() with missing leading counts as 1."""
    dims = _sizes(sizes if dims is None else (dims,))
    return repeat(input, (1,) * (input.dim() - len(dims)) + tuple(dims))


def _repeated_indices(repeats, output_size):
    """0 .. n-1, each as often as the n repeats say."""
    if repeats.dim() > 1 or repeats.dtype not in (_C.int64, _C.int32):
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor of type int")
    ends = _ops.cumsum(_ops.to(reshape(repeats, (-1,)), _C.int64), 0)
    if repeats.numel() == 0:
        return ends
    if output_size is None:
        least = reshape(_ops.to(_ops.amin(repeats), _C.int64), (1,))
        output_size, least = _ops.cat((ends[-1:], least)).tolist()
        if least < 0:
            raise RuntimeError("repeats can not be negative")
    # A mark where each run starts; sums of marks count the runs.
    marks = _ops.full((output_size + 1,), 0, dtype=_C.int64)
    ones = _ops.full((ends.numel() - 1,), 1, dtype=_C.int64)
    marks = _ops.index_add(marks, 0, ends[:-1], ones)
    return _ops.cumsum(marks[:output_size], 0)


@both
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each entry along dim so many times in a row.

    repeats: a number, or a tensor with one per entry, whose sum is waited for
    unless it is given as output_size. Of one tensor alone: the indices 0, 1, ...,
    each repeated so often.
    """
    if repeats is None:
        return _ops.to(_repeated_indices(input, output_size), input.dtype)
    if isinstance(repeats, _C.Tensor):
        if dim is None:
            input, dim = reshape(input, (-1,)), 0
        size = input.size(dim)
        if repeats.numel() == 1 and size != 1:
            repeats = _ops.expand(reshape(repeats, (1,)), (size,))
        if repeats.numel() != size:
            raise RuntimeError("repeats must have the same size as input along dim")
        index = _repeated_indices(repeats, output_size)
        return _ops.index_select(input, dim, index)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    dim = _wrap(dim, input.dim())
    shape = list(input.shape)
    wide = shape[: dim + 1] + [repeats] + shape[dim + 1 :]
    merged = shape[:dim] + [shape[dim] * repeats] + shape[dim + 1 :]
    return _merged_copy(_ops.expand(_ops.unsqueeze(input, dim + 1), wide), merged)


@method
def expand_as(self, other):
    """Expanded to other's size."""
    return _ops.expand(self, tuple(other.shape))


@method
def view_as(self, other):
    """Viewed in other's shape."""
    return _ops.view(self, tuple(other.shape))


@method
def reshape_as(self, other):
    """Reshaped to other's shape."""
    return reshape(self, tuple(other.shape))


@both
def broadcast_to(input, size):
    """Expanded to a size."""
    return _ops.expand(input, size)


@function
def broadcast_shapes(*shapes):
    """The shape that the given ones broadcast to."""
    shapes = [(s,) if isinstance(s, builtins.int) else s for s in shapes]
    rank = max((len(s) for s in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(shape)):
            if size == 1 or result[-1 - i] == size:
                continue
            if result[-1 - i] != 1:
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape"
                )
            result[-1 - i] = size
    return _C.Size(result)


@function
def broadcast_tensors(*tensors):
    """All expanded to their common shape."""
    shape = broadcast_shapes(*[x.shape for x in tensors])
    return tuple(_ops.expand(x, shape) for x in tensors)


@both(out=True)
def roll(input, shifts, dims=None):
    """Entries moved along dims, those that leave come in at the other end."""
    if dims is None and input.dim() == 1:
        dims = 0
    elif dims is None:
        shape = tuple(input.shape)
        return reshape(roll(reshape(input, (-1,)), shifts, 0), shape)
    shifts = (shifts,) if isinstance(shifts, builtins.int) else shifts
    dims = (dims,) if isinstance(dims, builtins.int) else dims
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    result = input
    for shift, dim in zip(shifts, dims):
        size = input.size(dim)
        cut = -shift % size if size else 0
        if cut:
            head = _ops.slice(result, dim, 0, cut)
            result = _ops.cat([_ops.slice(result, dim, cut, size), head], dim)
    result = _ops.clone(input) if result is input else result
    return _C.show_as(result, "RollBackward0", input)


@both
def flipud(input):
    """Order of the rows reversed."""
    return _ops.flip(input, (0,))


@both
def fliplr(input):
    """Order of the columns reversed."""
    return _ops.flip(input, (1,))


@overload("squeeze")
def _squeeze(input, *dims, inplace_=False):
    return _ops.squeeze(input, dims)
