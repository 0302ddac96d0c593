# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sums, products, means and extremes, and the standard's all(), any() and diff()."""

import holdfast
from holdfast.array_api.dtypes import as_type
from holdfast.array_api.reductions import along_axes, wrapped_axes

__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

_INTEGERS = (
    holdfast.bool,
    holdfast.uint8,
    holdfast.int8,
    holdfast.int16,
    holdfast.int32,
)


def _summable(x, dtype):
    """x as the type of its sum: small integers are summed as int64 (there is no
    uint64)."""
    if dtype is not None:
        return as_type(x, dtype)
    return as_type(x, holdfast.int64) if x.dtype in _INTEGERS else x


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over axes."""
    x = _summable(x, dtype)
    axes = wrapped_axes(axis, x.ndim)
    if not axes:
        return holdfast.clone(x)
    return holdfast.sum(x, axes, keepdims, dtype=x.dtype)


def _product(x, dim):
    """prod(), of complex numbers too: halves are multiplied until one is left."""
    if not x.dtype.is_complex:
        return holdfast.prod(x, dim, dtype=x.dtype)
    x = holdfast.movedim(x, dim, 0)
    if x.shape[0] == 0:
        return holdfast.ones(x.shape[1:], dtype=x.dtype, device=x.device)
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        product = x[:half] * x[half : 2 * half]
        x = holdfast.cat([product, x[2 * half :]], 0)
    return x[0]


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over axes."""
    return along_axes(_product, _summable(x, dtype), axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over axes."""
    axes = wrapped_axes(axis, x.ndim)
    return holdfast.mean(x, axes, keepdims) if axes else holdfast.clone(x)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance over axes, with N - correction in the denominator."""
    axes = wrapped_axes(axis, x.ndim)
    if axes:
        return holdfast.var(x, axes, correction=correction, keepdim=keepdims)
    # One element each: no deviation, over 1 - correction.
    return (x - x) / (1 - correction if correction < 1 else 0.0)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The root of var()."""
    axes = wrapped_axes(axis, x.ndim)
    if axes:
        return holdfast.std(x, axes, correction=correction, keepdim=keepdims)
    return var(x, axis=axis, correction=correction)


def _extreme(reduce, x, axis, keepdims):
    axes = wrapped_axes(axis, x.ndim)
    return reduce(x, axes, keepdims) if axes else holdfast.clone(x)


def max(x, /, *, axis=None, keepdims=False):
    """The largest element over axes; NaN if there is one."""
    return _extreme(holdfast.amax, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element over axes; NaN if there is one."""
    return _extreme(holdfast.amin, x, axis, keepdims)


def _truth(x):
    return x if x.dtype is holdfast.bool else holdfast.ne(x, 0)


def all(x, /, *, axis=None, keepdims=False):
    """Whether no element over axes is zero."""
    return _extreme(holdfast.all, _truth(x), axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element over axes is not zero."""
    return _extreme(holdfast.any, _truth(x), axis, keepdims)


def _scan_axis(name, x, axis):
    """The axis; None stands for a vector's only one."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(
                f"{name}(): axis must be given for an array of {x.ndim} dimensions."
            )
        return 0
    return wrapped_axes(axis, x.ndim)[0]


def _with_first(first, x, axis):
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    start = holdfast.full(shape, first, dtype=x.dtype, device=x.device)
    return holdfast.cat([start, x], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the elements up to each along axis, after a 0 with
    include_initial."""
    axis = _scan_axis("cumulative_sum", x, axis)
    x = _summable(x, dtype)
    if x.dtype.is_complex:
        parts = holdfast.cumsum(holdfast.view_as_real(x), axis)
        result = holdfast.view_as_complex(parts)
    else:
        result = holdfast.cumsum(x, axis, dtype=x.dtype)
    return _with_first(0, result, axis) if include_initial else result


def _products_so_far(x, axis):
    """cumprod() of complex numbers: each step multiplies by what lies twice as far."""
    x = holdfast.movedim(x, axis, 0)
    distance = 1
    while distance < x.shape[0]:
        x = holdfast.cat([x[:distance], x[distance:] * x[:-distance]], 0)
        distance *= 2
    return holdfast.movedim(x, 0, axis)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the elements up to each along axis, after a 1 with
    include_initial."""
    axis = _scan_axis("cumulative_prod", x, axis)
    x = _summable(x, dtype)
    if x.dtype.is_complex:
        result = _products_so_far(x, axis)
    else:
        result = holdfast.cumprod(x, axis, dtype=x.dtype)
    return _with_first(1, result, axis) if include_initial else result


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along axis, n times."""
    return holdfast.diff(x, n, axis, prepend, append)
