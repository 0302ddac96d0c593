# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""x[...] and x[...] = value, index_put, take, put_.

Integers, slices, None and ... make views. Index tensors (lists, arrays) and
boolean masks copy; the shape that index tensors broadcast to stands where they
are if they are next to each other, else in front, as in PyTorch. One mask alone
needs no wait: only the size of its result does. Indices out of range are an
error of the read.
"""

import operator

from holdfast import _C
from holdfast._registry import both, function, method
from holdfast.shapes import reshape, unbind

_ops = _C.ops
Tensor = _C.Tensor
_NOT_AN_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
    "are valid indices (got {})"
)


def _as_tensor(key):
    """A tensor, list, range or array as an index tensor or a mask."""
    if not isinstance(key, Tensor):
        if not isinstance(key, (list, range)) and not hasattr(
            key, "__array_interface__"
        ):
            raise IndexError(_NOT_AN_INDEX.format(type(key).__name__))
        if isinstance(key, range) or len(key) == 0:
            dtype = _C.bool if str(getattr(key, "dtype", "")) == "bool" else _C.int64
            key = _C.tensor(list(key), dtype=dtype)
        else:
            key = _C.as_tensor(key)
    if key.dtype is _C.uint8:  # a mask, in PyTorch's older days
        return _ops.ne(key, 0)
    if key.dtype is _C.bool or key.dtype is _C.int64 or key.dtype is _C.int32:
        return key
    if key.is_floating_point():
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors"
        )
    return _ops.to(key, _C.int64)


def _is_integer(key):
    return (
        not isinstance(key, (Tensor, list, bool))
        and hasattr(key, "__index__")
        and not getattr(key, "ndim", 0)
    )


def _parse(tensor, key):
    """The key as a list of parts, with ... written out and arrays as tensors."""
    parts = []
    used = dots = 0
    for k in key if isinstance(key, tuple) else (key,):
        if k is Ellipsis:
            dots += 1
        elif isinstance(k, slice) or _is_integer(k):
            used += 1
        elif k is not None and not isinstance(k, bool):
            k = _as_tensor(k)
            used += k.dim() if k.dtype is _C.bool else 1
        parts.append(k)
    if dots > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > tensor.dim():
        if tensor.dim() == 0 and _is_integer(parts[0]):
            raise IndexError(
                "invalid index of a 0-dim tensor: tensor.item() gives its number"
            )
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    if dots:
        at = next(i for i, k in enumerate(parts) if k is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (tensor.dim() - used)
    return parts


def _slice(tensor, dim, key):
    start, stop, step = key.start, key.stop, key.step
    step = 1 if step is None else operator.index(step)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    if start is None and stop is None and step == 1:
        return tensor
    start = None if start is None else operator.index(start)
    stop = None if stop is None else operator.index(stop)
    return _ops.slice(tensor, dim, start, stop, step)


def _select(tensor, dim, key):
    index, size = operator.index(key), tensor.size(dim)
    if not -size <= index < size:
        raise IndexError(
            f"index {index} is out of bounds for dimension {dim} with size {size}"
        )
    return _ops.select(tensor, dim, index)


def _selected(tensor, key):
    """The view that a tuple of plain ints names, or None if it is none."""
    if type(key) is not tuple or not 0 < len(key) <= tensor.dim():
        return None
    for k in key:
        if type(k) is not int:
            return None
    for k in key:
        tensor = _select(tensor, 0, k)
    return tensor


def _resolve(tensor, key):
    """Applies the basic parts; returns the view and [(dim, index or mask)]."""
    view = _selected(tensor, key)  # loops over elements: half the time of the rest
    if view is not None:
        return view, ()
    dim, advanced = 0, []
    view = tensor
    for k in _parse(tensor, key):
        if isinstance(k, slice):
            view = _slice(view, dim, k)
            dim += 1
        elif k is None:
            view = _ops.unsqueeze(view, dim)
            dim += 1
        elif isinstance(k, bool) or (
            isinstance(k, Tensor) and k.dtype is _C.bool and k.dim() == 0
        ):
            # A mask over a new dimension of size 1.
            view = _ops.unsqueeze(view, dim)
            k = k if isinstance(k, Tensor) else _C.tensor(k)
            advanced.append((dim, reshape(k, (1,))))
            dim += 1
        elif isinstance(k, Tensor) and k.dim():
            advanced.append((dim, k))
            dim += k.dim() if k.dtype is _C.bool else 1
        else:
            view = _select(view, dim, k)
    return view, advanced


def _sole_mask(advanced):
    return len(advanced) == 1 and advanced[0][1].dtype is _C.bool


def _index_tensors(view, advanced):
    """(dims, index tensors): masks as the positions of their True elements."""
    dims, indices = [], []
    for dim, index in advanced:
        if index.dtype is not _C.bool:
            dims.append(dim)
            indices.append(index)
            continue
        for i, size in enumerate(index.shape):
            if size != view.size(dim + i):
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index {i} does not "
                    f"match the shape of the indexed tensor {list(view.shape)} at "
                    f"index {dim + i}"
                )
        dims.extend(range(dim, dim + index.dim()))
        indices.extend(unbind(_ops.nonzero(index), 1))
    if len(indices) > 1:
        _check_broadcast(indices)
    return dims, indices


def _check_broadcast(indices):
    from holdfast.shapes import broadcast_shapes

    shapes = [index.shape for index in indices]
    try:
        broadcast_shapes(*shapes)
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with "
            f"shapes {', '.join(str(list(s)) for s in shapes)}"
        ) from None


def getitem(self, key):
    """self[key]"""
    if type(key) is int and self.dim():
        return _select(self, 0, key)
    view, advanced = _resolve(self, key)
    if not advanced:
        # A new tensor object even for x[...], as in PyTorch.
        return _ops.view(self, tuple(self.shape)) if view is self else view
    if _sole_mask(advanced):
        return _ops.index_mask(view, *advanced[0])
    dims, indices = _index_tensors(view, advanced)
    return _ops.index((view, *indices), dims)


def setitem(self, key, value):
    """self[key] = value"""
    view, advanced = _resolve(self, key)
    if not advanced:
        _assign(view, value)
        return
    value = _value_for(view, value)
    if _sole_mask(advanced):
        dim, mask = advanced[0]
        rank = view.dim() - mask.dim() + 1
        _ops.mask_put_(view, dim, mask, _squeezed(value, rank))
        return
    dims, indices = _index_tensors(view, advanced)
    rank = view.dim() - len(dims) + max(index.dim() for index in indices)
    _ops.index_put_((view, _squeezed(value, rank), *indices), dims)


def _value_for(view, value):
    """What is assigned, as a tensor of the target's type."""
    if isinstance(value, Tensor):
        return _ops.to(value, view.dtype)
    if isinstance(value, (bool, int, float)):
        return _ops.full((), value, dtype=view.dtype)
    return _C.as_tensor(value, dtype=view.dtype)


def _squeezed(value, rank):
    """PyTorch lets an assigned value have further leading sizes of 1."""
    extra = value.dim() - rank
    if extra > 0 and all(size == 1 for size in value.shape[:extra]):
        return reshape(value, tuple(value.shape)[extra:])
    return value


def _assign(view, value):
    if isinstance(value, Tensor):
        view.copy_(_squeezed(value, view.dim()))
    elif isinstance(value, (bool, int, float)):
        view.fill_(value)
    else:
        view.copy_(_C.as_tensor(value, dtype=view.dtype))


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem


# ---- the same as functions


def _put_arguments(input, indices, values):
    key = tuple(slice(None) if k is None else k for k in indices)
    view, advanced = _resolve(input, key)
    if not advanced:
        raise IndexError("index_put: at least one index must be a tensor")
    dims, tensors = _index_tensors(view, advanced)
    return view, (values, *tensors), dims


@both(out=True)
def index_put(input, indices, values, accumulate=False):
    """Copy of input with values, broadcast, written (added) at input[indices].

    indices: a tuple of index tensors, masks or None (all of a dimension); values
    has input's dtype.
    """
    view, rest, dims = _put_arguments(input, indices, values)
    result = _ops.index_put((view, *rest), dims, accumulate)
    return result if view is input else reshape(result, tuple(input.shape))


@method
def index_put_(self, indices, values, accumulate=False):
    """index_put() in place."""
    view, rest, dims = _put_arguments(self, indices, values)
    _ops.index_put_((view, *rest), dims, accumulate)
    return self


@both(out=True)
def take(input, index):
    """Elements at positions counted over all elements; index's shape."""
    if index.dtype is not _C.int64:
        raise RuntimeError("take(): Expected a long tensor for index")
    result = _ops.index((reshape(input, (-1,)), index), (0,))
    return _C.show_as(result, "TakeBackward0", input)


@both
def put(input, index, source, accumulate=False):
    """Copy of input with source written (added) at positions over all elements."""
    _check_put(input, index, source)
    flat = reshape(input, (-1,))
    values = reshape(source, tuple(index.shape))
    result = _ops.index_put((flat, values, index), (0,), accumulate)
    return _ops.view(result, tuple(input.shape))


@method
def put_(self, index, source, accumulate=False):
    """put() in place."""
    if not self.is_contiguous():
        return self.copy_(put(self, index, source, accumulate))
    _check_put(self, index, source)
    values = reshape(source, tuple(index.shape))
    _ops.index_put_((_ops.view(self, (-1,)), values, index), (0,), accumulate)
    return self


def _check_put(input, index, source):
    if index.dtype is not _C.int64:
        raise RuntimeError("put_(): Expected a long tensor for index")
    if source.dtype is not input.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype")
    if index.numel() != source.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, "
            f"but got source.numel() = {source.numel()}, index.numel() = "
            f"{index.numel()}"
        )


# ---- indices that may lie outside where a mask is False


def _within(input, indices):
    """The key of the indices, each moved into the dimension that it counts in."""
    key = []
    for size, index in zip(input.shape, indices):
        none = index is None
        key.append(slice(None) if none else _ops.clamp(index, -size, size - 1))
    return tuple(key)


@function(names=("_unsafe_masked_index",))
def _unsafe_masked_index(input, mask, indices, fill):
    """input[indices] where mask is True, else fill. Indices may be out of range where
    the mask is False."""
    return _ops.where(mask, getitem(input, _within(input, indices)), fill)


@function(names=("_unsafe_masked_index_put_accumulate",))
def _unsafe_masked_index_put_accumulate(input, mask, indices, values):
    """Copy of input with values added at input[indices] where mask is True: the adjoint
    of _unsafe_masked_index()."""
    kept = _ops.where(mask, values, 0)
    return index_put(input, _within(input, indices), kept, True)
