# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""x[...] and x[...] = value.

Basic indices (integers, slices, None, ...) are views; integer tensors, lists
and arrays gather. Boolean masks are not there yet, except for assigning one
value.
"""

import operator

from holdfast import _C
from holdfast.errors import UnsupportedError
from holdfast.shapes import broadcast_to, reshape

_ops = _C.ops
Tensor = _C.Tensor
_NO_MASK = "holdfast has no {} with a boolean mask yet; use torch.where()."


def _is_mask(key):
    return isinstance(key, bool) or (isinstance(key, Tensor) and key.dtype is _C.bool)


def _as_index(key):
    """A list, array or integer tensor as an integer tensor; None for others."""
    if isinstance(key, Tensor):
        return key
    if isinstance(key, (list, range)) or hasattr(key, "__array_interface__"):
        if isinstance(key, range) or len(key) == 0:
            return _C.tensor(list(key), dtype=_C.int64)
        return _C.as_tensor(key)
    return None


def _is_integer(key):
    return (
        not isinstance(key, (Tensor, list))
        and hasattr(key, "__index__")
        and not (getattr(key, "ndim", 0))
    )


def _expanded(tensor, key):
    """The key as a list with ... and missing trailing slices written out."""
    keys = list(key) if isinstance(key, tuple) else [key]
    used = 0
    for k in keys:
        if k is not None and k is not Ellipsis and not isinstance(k, bool):
            used += k.dim() if _is_mask(k) else 1
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    if dots:
        keys[dots[0] : dots[0] + 1] = [slice(None)] * (tensor.dim() - used)
    return keys


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


def _basic(tensor, key, masks=None):
    """Applies the basic parts; returns the view and [(dim, index tensor)]."""
    dim, advanced = 0, []
    view = tensor
    for k in _expanded(tensor, key):
        if _is_integer(k) and not isinstance(k, bool):
            view = _select(view, dim, k)
        elif isinstance(k, slice):
            view = _slice(view, dim, k)
            dim += 1
        elif k is None:
            view = _ops.unsqueeze(view, dim)
            dim += 1
        elif isinstance(k, Tensor) and k.dtype is _C.bool and masks is not None:
            masks.append((dim, k))
            dim += k.dim()
        elif _is_mask(k):
            raise UnsupportedError(_NO_MASK.format("indexing"))
        else:
            index = _as_index(k)
            if index is None:
                raise IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and integer "
                    f"tensors are valid indices (got {type(k).__name__})"
                )
            if index.dtype is _C.bool:
                raise UnsupportedError(_NO_MASK.format("indexing"))
            if index.is_floating_point():
                raise IndexError(
                    "tensors used as indices must be long, int, byte or bool tensors"
                )
            if index.dim() == 0:
                view = _select(view, dim, index.item())
                continue
            advanced.append((dim, index))
            dim += 1
    return view, advanced


def _merge(view, advanced):
    """One dimension and a 1-D index for adjacent advanced indices.

    Returns the view with those dimensions merged, the dimension, the flat
    index and the shape that takes its place.
    """
    first = advanced[0][0]
    dims = [d for d, _ in advanced]
    if dims != list(range(first, first + len(dims))):
        raise UnsupportedError(
            "holdfast has no indexing with index tensors in dimensions that are not "
            "next to each other yet."
        )
    sizes = [view.size(d) for d in dims]
    shapes = [index.shape for _, index in advanced]
    total = 1
    for size in sizes:
        total *= size
    flat = None
    shape = _broadcast(shapes)
    for (_, index), size in zip(advanced, sizes):
        index = _ops.to(index, _C.int64)
        index = _ops.where(index < 0, index + size, index)
        if len(dims) > 1:
            # Past the end in one dimension must not be a place in another.
            outside = (index < 0) | (index >= size)
            index = _ops.where(outside, total, index)
        flat = index if flat is None else flat * size + index
    flat = reshape(broadcast_to(flat, shape), (-1,))
    if len(dims) > 1:
        old = tuple(view.shape)
        view = reshape(view, old[:first] + (total,) + old[first + len(dims) :])
    return view, first, flat, tuple(shape)


def _broadcast(shapes):
    from holdfast.shapes import broadcast_shapes

    try:
        return broadcast_shapes(*shapes)
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with "
            f"shapes {', '.join(str(list(s)) for s in shapes)}"
        ) from None


def getitem(self, key):
    """self[key]"""
    if type(key) is int and self.dim():
        return _select(self, 0, key)
    masks = []
    view, advanced = _basic(self, key, masks)
    if len(masks) == 1 and not advanced and masks[0][1].dim():
        return _ops.index_mask(view, *masks[0])
    if masks:
        raise UnsupportedError(_NO_MASK.format("indexing"))
    if not advanced:
        # A new tensor object even for x[...], as in PyTorch.
        return _ops.view(self, tuple(self.shape)) if view is self else view
    view, dim, index, shape = _merge(view, advanced)
    rows = _ops.index_select(view, dim, index)
    if len(shape) == 1:
        return rows
    old = tuple(rows.shape)
    return _ops.view(rows, old[:dim] + shape + old[dim + 1 :])


def setitem(self, key, value):
    """self[key] = value"""
    if isinstance(key, Tensor) and key.dtype is _C.bool:
        return _assign_mask(self, key, value)
    view, advanced = _basic(self, key)
    if not advanced:
        _assign(view, value)
        return
    merged, dim, index, shape = _merge(view, advanced)
    if len(advanced) > 1 and not view.is_contiguous():
        raise UnsupportedError(
            "holdfast has no assignment through several index tensors to a "
            "non-contiguous tensor yet."
        )
    rows = list(merged.shape)
    if isinstance(value, Tensor):
        target = rows[:dim] + list(shape) + rows[dim + 1 :]
        value = _ops.to(broadcast_to(_squeezed(value, len(target)), target), self.dtype)
        value = reshape(value, rows[:dim] + [index.numel()] + rows[dim + 1 :])
    rows[dim] = index.numel()
    sizes = [1] * len(rows)
    sizes[dim] = -1
    Tensor.scatter_(merged, dim, _ops.expand(_ops.view(index, sizes), rows), value)


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


def _assign_mask(self, mask, value):
    if tuple(mask.shape) != tuple(self.shape)[: mask.dim()]:
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} does not match the shape of the "
            f"indexed tensor {list(self.shape)}"
        )
    if isinstance(value, Tensor) and value.numel() != 1:
        raise UnsupportedError(_NO_MASK.format("assignment of several values"))
    if isinstance(value, Tensor):
        value = reshape(value, ())
    mask = reshape(mask, tuple(mask.shape) + (1,) * (self.dim() - mask.dim()))
    self.copy_(_ops.where(mask, value, self))


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem
