# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Places of elements, choice, order."""

import holdfast
from holdfast.array_api.dtypes import as_type, promoted

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "where",
]


def _numbers(x):
    """Booleans as numbers."""
    return as_type(x, holdfast.uint8) if x.dtype is holdfast.bool else x


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the largest element, the first of equals."""
    return holdfast.argmax(_numbers(x), axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the smallest element, the first of equals."""
    return holdfast.argmin(_numbers(x), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    found = as_type(holdfast.ne(x, 0), holdfast.int64)
    if axis == ():
        return found
    return holdfast.sum(found, axis, keepdims)


def nonzero(x, /):
    """For each axis the indices of elements that are not zero."""
    if x.ndim == 0:
        raise ValueError("nonzero(): an array of 0 dimensions has no indices.")
    return tuple(holdfast.nonzero(x, as_tuple=True))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of x2 belong in the sorted vector x1 (sorted by `sorter`)."""
    x1, x2 = promoted(x1, x2)
    if sorter is not None:
        x1 = holdfast.index_select(x1, 0, as_type(sorter, holdfast.int64))
    return holdfast.searchsorted(x1, x2, side=side)


def where(condition, x1, x2, /):
    """x1's elements where the condition is true, x2's elsewhere."""
    if isinstance(x1, holdfast.Tensor) or isinstance(x2, holdfast.Tensor):
        x1, x2 = promoted(x1, x2)
    return holdfast.where(condition, x1, x2)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort() takes elements from."""
    return holdfast.argsort(x, axis, descending, stable)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in order along axis; NaN is the largest."""
    return holdfast.sort(x, axis, descending, stable)[0]
