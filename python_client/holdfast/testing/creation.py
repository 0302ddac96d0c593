# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""make_tensor, by PyTorch's name and bounds."""

import math

import holdfast


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of `shape` with values drawn evenly from [low, high).

    By default from [-9, 9) for floating and complex numbers, [-9, 10) for integers
    ([0, 10) for uint8), and both truths. `noncontiguous`: every second element of a
    larger one. `exclude_zero`: zeros become the smallest normal number, or 1.
    ValueError for an empty interval, and for a gradient of integers.
    """
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = shape[0]
    shape = tuple(shape)
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually "
            f"exclusive, but got noncontiguous={noncontiguous} and "
            f"memory_format={memory_format}"
        )
    if requires_grad and whole:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got dtype={dtype}"
        )
    low, high = _interval(dtype, whole, low, high)
    spread = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if spread else shape
    result = _draw(drawn, dtype, device, whole, low, high)
    if spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if whole else holdfast.finfo(dtype).tiny
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype, whole):
    """(least, first above the largest, default low, default high)"""
    if dtype is holdfast.bool:
        return 0, 2, 0, 2
    if whole:
        info = holdfast.iinfo(dtype)
        # randint() takes bounds of 64 bits.
        above = info.max + (dtype is not holdfast.int64)
        return info.min, above, max(-9, info.min), 10
    info = holdfast.finfo(dtype)
    return info.min, info.max, -9, 9


def _interval(dtype, whole, low, high):
    least, above, default_low, default_high = _bounds(dtype, whole)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(
            f"`low` and `high` cannot be NaN, but got low={low} and high={high}"
        )
    if low > high or (whole and low == high):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= above:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but "
            f"{dtype} only supports [{least}, {above})"
        )
    low, high = (min(max(bound, least), above) for bound in (low, high))
    return (math.ceil(low), math.ceil(high)) if whole else (low, high)


def _draw(shape, dtype, device, whole, low, high):
    if whole:
        return holdfast.randint(low, high, shape, dtype=dtype, device=device)
    result = holdfast.empty(shape, dtype=dtype, device=device)
    numbers = holdfast.view_as_real(result) if dtype.is_complex else result
    # A wider interval than the type's largest number is drawn at half its width.
    wide = high - low >= holdfast.finfo(dtype).max
    with holdfast.no_grad():
        if wide:
            numbers.uniform_(low / 2, high / 2).mul_(2)
        else:
            numbers.uniform_(low, high)
    return result
