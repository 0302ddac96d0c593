# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Counting elements by the bin they fall into."""

import math

from holdfast import _C
from holdfast._registry import both
from holdfast.return_types import named_result

_ops = _C.ops
Tensor = _C.Tensor

_histogram_result = named_result("histogram", ["hist", "bin_edges"])
_histogramdd_result = named_result("histogramdd", ["hist", "bin_edges"])


def _outer_edges(name, input, low, high, spread):
    """The range to count in, as two tensors: the data's, or the one given."""
    if low is None:
        if input.numel() == 0:
            # Of no data, as NumPy: one unit from 0 on.
            low = _ops.full((), 0, dtype=input.dtype)
            return low, low + 1
        else:
            values = input.detach()
            low, high = _ops.amin(values), _ops.amax(values)
    else:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{name}(): range of [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(f"{name}(): max must be larger than min")
        low = _ops.full((), low, dtype=input.dtype)
        high = _ops.full((), high, dtype=input.dtype)
    # An empty range is widened.
    equal = _ops.to(_ops.eq(low, high), input.dtype) * spread
    return low - equal, high + equal


def _edges(low, high, bins):
    """bins + 1 evenly spaced values, exact at both ends."""
    place = _ops.arange(0, bins + 1)
    step = (high - low) / bins
    return _ops.where(
        place <= bins // 2, low + step * place, high - step * (bins - place)
    )


def _check(name, input, bins):
    if not input.is_floating_point():
        raise RuntimeError(f"\"{name}\" not implemented for '{input.dtype}'")
    if bins is not None and bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")


@both(out=True)
def histc(input, bins=100, min=0, max=0):
    """Elements in each of `bins` equal bins between min and max, or between the
    smallest and the largest where min == max; others, and NaN, do not count. A
    range that is not finite is a RuntimeError, as NaN among the data makes it."""
    _check("histc", input, bins)
    given = (None, None) if min == max else (min, max)
    low, high = _outer_edges("histc", input, *given, 1)
    return _ops.histogram(input.detach(), _edges(low, high, bins), None, True)


@both(out=True)
def histogram(input, bins=100, *, range=None, weight=None, density=False):
    """(hist, bin_edges): elements, or their weights, in each bin; bins a number,
    with the range of the data or the one given, or a tensor of increasing edges.
    density: divided so that the integral is 1."""
    uniform = not isinstance(bins, Tensor)
    _check("histogram", input, bins if uniform else None)
    if weight is not None and tuple(weight.shape) != tuple(input.shape):
        raise RuntimeError(
            "histogram(): if weight tensor is provided it should have the same shape "
            f"as the input tensor excluding its innermost dimension, but got input "
            f"{list(input.shape)} and weight {list(weight.shape)}"
        )
    if uniform:
        low, high = _outer_edges("histogram", input, *(range or (None, None)), 0.5)
        edges = _edges(low, high, bins)
    else:
        if range is not None:
            raise TypeError("histogram() takes a range only with a number of bins")
        edges = bins
    counts = _ops.histogram(input.detach(), edges, weight, uniform)
    if density:
        widths = _ops.slice(edges, 0, 1) - _ops.slice(edges, 0, 0, -1)
        counts = counts / (_ops.sum(counts) * widths)
    return _histogram_result(counts, edges)


@both
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """(hist, bin_edges) of points [..., D]: how many, or the sum of their weights
    [...], lie in each cell of a grid; hist has D dimensions, bin_edges D tensors.

    bins: a number for all dimensions or for each one, or D tensors of increasing
    edges. range: lowest and highest edge of each dimension, 2 D numbers.
    """
    _check("histogramdd", input, None)
    if input.dim() < 2:
        raise RuntimeError(
            "histogramdd: input tensor should have at least 2 dimensions. "
            f"Got {list(input.shape)}."
        )
    count = input.size(-1)
    if not isinstance(bins, (list, tuple)):
        bins = [bins] * count
    if len(bins) != count:
        raise RuntimeError(
            f"histogramdd: expected {count} sequences of bins for {count}-dimensional "
            f"points, but got {len(bins)}"
        )
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"histogramdd: range should have {2 * count} elements, but got {len(range)}"
        )
    points = input.detach().reshape(-1, count)
    if weight is not None:
        if tuple(weight.shape) != tuple(input.shape[:-1]):
            raise RuntimeError(
                "histogramdd: if weight tensor is provided it should have the same "
                "shape as the input tensor excluding its innermost dimension, but got "
                f"input {list(input.shape)} and weight {list(weight.shape)}"
            )
        weight = weight.detach().reshape(-1)
    cell = _ops.full((points.size(0),), 0)
    inside = _ops.full((points.size(0),), True)
    edges, sizes = [], []
    for d, n in enumerate(bins):
        x = _ops.select(points, 1, d)
        own, place = _places(x, n, None if range is None else range[2 * d : 2 * d + 2])
        n = own.size(0) - 1
        inside = _ops.logical_and(inside, _ops.ge(place, 0))
        cell = cell * n + place
        edges.append(own)
        sizes.append(n)
    cell = _ops.where(inside, cell, 0)
    amount = _ops.to(inside, _C.float64)
    if weight is not None:
        amount = _ops.where(inside, _ops.to(weight, _C.float64), 0.0)
    hist = _ops.full((math.prod(sizes),), 0.0, dtype=_C.float64)
    hist = _ops.scatter_add(hist, 0, cell, amount)
    hist = _ops.view(_ops.to(hist, input.dtype), sizes)
    if density:
        volume = _ops.full((), 1.0, dtype=input.dtype)
        for own in edges:
            widths = _ops.slice(own, 0, 1) - _ops.slice(own, 0, 0, -1)
            volume = _ops.unsqueeze(volume, -1) * widths
        hist = hist / (_ops.sum(hist) * volume)
    return _histogramdd_result(hist, tuple(edges))


def _places(x, bins, limits):
    """Edges of one dimension, and the bin of each element; -1 outside."""
    if isinstance(bins, Tensor):
        edges = bins
    else:
        _check("histogramdd", x, bins)
        low, high = _outer_edges("histogramdd", x, *(limits or (None, None)), 0.5)
        edges = _edges(low, high, bins)
    last = _ops.select(edges, 0, edges.size(0) - 1)
    place = _ops.searchsorted(edges, x.contiguous(), right=True) - 1
    # The last bin is closed.
    place = _ops.where(_ops.eq(x, last), edges.size(0) - 2, place)
    return edges, _ops.where(_ops.le(x, last), place, -1)


@both(out=True)
def bincount(input, weights=None, minlength=0):
    """How often each of 0 .. max(input) occurs in a 1-D tensor of integers, or the
    sum of the weights there; at least minlength long. RuntimeError for negative
    values."""
    return _ops.bincount(input, weights, minlength)
