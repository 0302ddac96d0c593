# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays as sets of numbers. Each NaN is different from all others."""

from typing import NamedTuple

import holdfast
from holdfast import Tensor
from holdfast.array_api.dtypes import promoted

__all__ = [
    "isin",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAllResult(NamedTuple):
    """What unique_all() returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts() returns."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse() returns."""

    values: Tensor
    inverse_indices: Tensor


def _unique(x):
    """(values, first index, inverse, count) of the different elements, in order."""
    flat = x.detach().reshape(-1)
    n = flat.shape[0]
    if x.dtype.is_complex:
        # By the real parts, and among equals by the imaginary ones.
        order = holdfast.argsort(flat.imag, stable=True)
        order = order[holdfast.argsort(flat.real[order], stable=True)]
    else:
        order = holdfast.argsort(flat, stable=True)
    sorted_ = flat[order]
    first = holdfast.ones((n,), dtype=holdfast.bool, device=x.device)
    if n > 1:
        first[1:] = sorted_[1:] != sorted_[:-1]
    starts = holdfast.nonzero(first).reshape(-1)
    run = holdfast.cumsum(first, 0) - 1
    inverse = holdfast.empty_like(order).scatter_(0, order, run)
    end = holdfast.full((1,), n, dtype=holdfast.int64, device=x.device)
    counts = holdfast.diff(starts, append=end)
    return sorted_[starts], order[starts], inverse.reshape(x.shape), counts


def unique_all(x, /):
    """The different elements in order, where each is first, where each of x's went, and
    how often each occurs."""
    return UniqueAllResult(*_unique(x))


def unique_counts(x, /):
    """The different elements in order, and how often each occurs."""
    values, _, _, counts = _unique(x)
    return UniqueCountsResult(values, counts)


def unique_inverse(x, /):
    """The different elements in order, and where each of x's elements went."""
    values, _, inverse, _ = _unique(x)
    return UniqueInverseResult(values, inverse)


def unique_values(x, /):
    """The different elements in order."""
    return _unique(x)[0]


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is among those of x2."""
    x1, x2 = promoted(x1, x2)
    return holdfast.isin(x1, x2, invert=invert)
