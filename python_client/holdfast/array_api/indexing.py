# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elements by their indices, which may count from the end."""

import holdfast

__all__ = ["take", "take_along_axis"]


def _from_start(indices, size):
    """Negative indices as their distance from the start."""
    indices = indices.to(holdfast.int64)
    return holdfast.where(indices < 0, indices + size, indices)


def take(x, indices, /, *, axis=None):
    """Slices of x along axis; None stands for a vector's only one."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(
                f"take(): axis must be given for an array of {x.ndim} dimensions."
            )
        axis = 0
    places = _from_start(indices, x.shape[axis])
    taken = holdfast.index_select(x, axis, places.reshape(-1))
    if places.ndim == 1:
        return taken
    axis %= x.ndim
    return taken.reshape((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


def take_along_axis(x, indices, /, *, axis=-1):
    """The element at an index along axis for each position elsewhere."""
    places = _from_start(indices, x.shape[axis])
    return holdfast.take_along_dim(x, places, axis)
