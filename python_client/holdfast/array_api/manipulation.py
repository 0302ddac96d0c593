# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays joined, cut and shaped."""

import holdfast
from holdfast.array_api.dtypes import as_type, result_type

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def _axes(axis, ndim, name):
    """A tuple of axes counted from the start; IndexError out of range, ValueError for
    one that is named twice."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(
                f"{name}(): axis {a} is out of range for {ndim} dimensions."
            )
    wrapped = tuple(a % ndim for a in axes)
    if len(set(wrapped)) != len(wrapped):
        raise ValueError(f"{name}(): an axis is named twice. Got {axis}.")
    return wrapped


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes have together; None, a size that nobody
    knows, stays None beside 1 or None. ValueError where they do not fit."""
    rank = max(map(len, shapes), default=0)
    result = []
    for place in range(-rank, 0):
        sizes = {s[place] for s in shapes if len(s) >= -place} - {1}
        known = sizes - {None}
        if len(known) > 1:
            raise ValueError(f"the shapes do not broadcast together. Got {shapes}.")
        result.append(known.pop() if known else None if sizes else 1)
    return tuple(result)


def broadcast_to(x, /, shape):
    """A view of x with another shape, its elements repeated."""
    return holdfast.broadcast_to(x, tuple(shape))


def broadcast_arrays(*arrays):
    """Views of the arrays with their common shape."""
    shape = broadcast_shapes(*(tuple(a.shape) for a in arrays))
    return tuple(holdfast.broadcast_to(a, shape) for a in arrays)


def concat(arrays, /, *, axis=0):
    """The arrays one after the other along axis; None flattens them first."""
    common = result_type(*arrays)
    arrays = [as_type(a, common) for a in arrays]
    if axis is None:
        return holdfast.cat([a.reshape(-1) for a in arrays], 0)
    _axes(axis, arrays[0].ndim, "concat")
    return holdfast.cat(arrays, axis)


def stack(arrays, /, *, axis=0):
    """The arrays along a new axis."""
    common = result_type(*arrays)
    return holdfast.stack([as_type(a, common) for a in arrays], axis)


def unstack(x, /, *, axis=0):
    """The slices along axis."""
    return tuple(holdfast.unbind(x, axis))


def expand_dims(x, /, axis):
    """A view with axes of size 1 at places of the result."""
    count = 1 if isinstance(axis, int) else len(axis)
    new = set(_axes(axis, x.ndim + count, "expand_dims"))
    sizes = iter(x.shape)
    shape = [1 if i in new else next(sizes) for i in range(x.ndim + count)]
    return holdfast.reshape(x, shape)


def squeeze(x, /, axis):
    """A view without axes of size 1; ValueError for one of another size."""
    axes = _axes(axis, x.ndim, "squeeze")
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(
                f"squeeze(): axis {a} has size {x.shape[a]}, not 1. Got shape "
                f"{tuple(x.shape)}."
            )
    shape = [size for i, size in enumerate(x.shape) if i not in axes]
    return holdfast.reshape(x, shape)


def flip(x, /, *, axis=None):
    """The elements in reverse order along axes, all of them by default."""
    axes = range(x.ndim) if axis is None else _axes(axis, x.ndim, "flip")
    return holdfast.flip(x, tuple(axes))


def moveaxis(x, source, destination, /):
    """A view with axes at other places."""
    return holdfast.movedim(x, source, destination)


def permute_dims(x, /, axes):
    """A view with the axes in another order."""
    return holdfast.permute(x, tuple(axes))


def repeat(x, repeats, /, *, axis=None):
    """Each element (slice along axis) as often as `repeats` says."""
    if isinstance(repeats, holdfast.Tensor):
        repeats = as_type(repeats, holdfast.int64)
    return holdfast.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape: a view where that can be, else a copy; copy says
    which it must be (ValueError where a view cannot)."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if copy is None:
        return holdfast.reshape(x, shape)
    if copy:
        return holdfast.clone(x).reshape(shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): {error}") from error


def roll(x, /, shift, *, axis=None):
    """Elements moved along axes, the last ones to the front."""
    if axis is None:
        return holdfast.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    if isinstance(shift, int) and not isinstance(axis, int):
        shift = (shift,) * len(axis)
    return holdfast.roll(x, shift, axis)


def tile(x, repetitions, /):
    """x as often along each axis as `repetitions` says."""
    return holdfast.tile(x, tuple(repetitions))
