# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays from nothing, from numbers, and from other libraries' arrays."""

import holdfast
from holdfast import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of a tensor, an array, numbers or nested sequences of them. A tensor is
    itself unless it changes or copy is True; all else is copied: ValueError for it, and
    for what must change, with copy=False."""
    if isinstance(obj, Tensor):
        moved = obj.to(obj.dtype if dtype is None else dtype, device=device)
        if moved is not obj:
            if copy is False:
                raise ValueError(
                    f"asarray(copy=False): {obj.dtype.name} on {obj.device} must be "
                    f"copied to be {moved.dtype.name} on {moved.device}."
                )
            return moved
        return holdfast.clone(obj) if copy else obj
    if copy is False:
        raise ValueError(
            f"asarray(copy=False): a {type(obj).__name__} is always copied to the "
            "daemon."
        )
    if not hasattr(obj, "__array__") and hasattr(obj, "__dlpack__"):
        return asarray(holdfast.from_dlpack(obj), dtype=dtype, device=device)
    return holdfast.tensor(obj, dtype=dtype, device=device)


def from_dlpack(x, /, *, device=None, copy=None):
    """A tensor with the elements of another library's array. ValueError with
    copy=False for what must be copied: all but Holdfast's own tensors."""
    if copy is False and not isinstance(x, Tensor):
        raise ValueError(
            f"from_dlpack(copy=False): a {type(x).__name__} is always copied to the "
            "daemon."
        )
    return asarray(holdfast.from_dlpack(x), device=device, copy=copy)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """start, start + step, ... before stop, or 0, 1, ... before start."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError(f"arange(): step must not be 0. Got {start}, {stop}, {step}.")
    if (stop - start) / step <= 0:
        if dtype is None:
            whole = all(isinstance(n, int) for n in (start, stop, step))
            dtype = holdfast.int64 if whole else None
        return empty(0, dtype=dtype, device=device)
    return holdfast.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """num numbers at equal distances from start to stop, which is the last of them
    with endpoint."""
    count = num if endpoint else num + 1
    result = holdfast.linspace(start, stop, count, dtype=dtype, device=device)
    return result if endpoint else result[:num]


def empty(shape, *, dtype=None, device=None):
    """An array of whatever is in memory."""
    return holdfast.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros."""
    return holdfast.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    """An array of ones."""
    return holdfast.ones(_shape(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of one number; without dtype of that number's default type."""
    return holdfast.full(_shape(shape), fill_value, dtype=dtype, device=device)


def _options_of(x, dtype, device):
    return {
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }


def empty_like(x, /, *, dtype=None, device=None):
    """empty() with x's shape, type and device."""
    return empty(x.shape, **_options_of(x, dtype, device))


def zeros_like(x, /, *, dtype=None, device=None):
    """zeros() with x's shape, type and device."""
    return zeros(x.shape, **_options_of(x, dtype, device))


def ones_like(x, /, *, dtype=None, device=None):
    """ones() with x's shape, type and device."""
    return ones(x.shape, **_options_of(x, dtype, device))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """full() with x's shape, type and device."""
    return full(x.shape, fill_value, **_options_of(x, dtype, device))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix with ones on its k-th diagonal, above the main one if positive."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return holdfast.eye(n_rows, n_cols, dtype=dtype, device=device)
    result = zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        result.diagonal(k).fill_(1)
    return result


def meshgrid(*arrays, indexing="xy"):
    """Coordinate grids of vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(
            f"meshgrid(): indexing must be 'xy' or 'ij'. Got {indexing!r}."
        )
    return tuple(holdfast.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def tril(x, /, *, k=0):
    """Matrices with zeros above the k-th diagonal."""
    return holdfast.tril(x, k)


def triu(x, /, *, k=0):
    """Matrices with zeros below the k-th diagonal."""
    return holdfast.triu(x, k)
