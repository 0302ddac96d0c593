# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How statistics name axes: one, several, none of them (`()`), or all (None)."""

import holdfast


def wrapped_axes(axis, ndim):
    """The axes from the start, in order; IndexError for one that is not there,
    ValueError for one that is named twice."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of range for {ndim} dimensions.")
    wrapped = sorted(a % ndim for a in axes)
    if len(set(wrapped)) != len(wrapped):
        raise ValueError(f"an axis is named twice. Got {axis}.")
    return tuple(wrapped)


def merged(x, axes):
    """x with `axes` as one, the last."""
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = [x.shape[i] for i in kept]
    size = 1
    for a in axes:
        size *= x.shape[a]
    return holdfast.permute(x, (*kept, *axes)).reshape(*shape, size)


def with_axes(result, axes):
    """The result with an axis of size 1 at each place that was reduced."""
    for a in axes:
        result = holdfast.unsqueeze(result, a)
    return result


def along_axes(reduce, x, axis, keepdims):
    """`reduce(x, dim)`, which takes one dimension, over axes."""
    axes = wrapped_axes(axis, x.ndim)
    result = reduce(merged(x, axes), -1)
    return with_axes(result, axes) if keepdims else result
