# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Sorting, selecting and searching random tensors, against NumPy."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_strategies import (
    FLOATS,
    INTEGERS,
    REAL,
    check,
    covers,
    dims_of,
    drawn,
    fixed,
    shapes,
)

import holdfast


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with holdfast.connect(daemon.address("shm"), default=True):
        yield


def stable_order(a, dim, descending):
    """Indices; NaN counts as the largest, equals stay in order."""
    if descending:
        back = np.argsort(np.flip(a, dim), dim, kind="stable")
        return a.shape[dim] - 1 - np.flip(back, dim)
    return np.argsort(a, dim, kind="stable")


@fixed
@given(data=st.data())
def test_sort(data):
    x = data.draw(drawn(REAL, shapes(1)))
    dim, down = data.draw(dims_of(x.array.ndim)), data.draw(st.booleans())
    order = stable_order(x.array, dim, down)
    values, indices = holdfast.sort(x.tensor, dim, down, stable=True)
    check(values, np.take_along_axis(x.array, order, dim), x.dtype, 0)
    check(indices, order, "int64")
    check(holdfast.argsort(x.tensor, dim, down, stable=True), order, "int64")
    check(holdfast.msort(x.tensor), np.sort(x.array, 0), x.dtype, 0)


@fixed
@given(data=st.data())
def test_topk(data):
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1)))
    dim = data.draw(dims_of(x.array.ndim))
    k = data.draw(st.integers(0, x.array.shape[dim]))
    largest = data.draw(st.booleans())
    ranked = np.take_along_axis(x.array, stable_order(x.array, dim, largest), dim)
    expected = np.take(ranked, range(k), dim)
    values, indices = holdfast.topk(x.tensor, k, dim, largest)
    check(values, expected, x.dtype, 0)
    check(values, np.take_along_axis(x.array, indices.numpy(), dim), x.dtype, 0)


@fixed
@given(data=st.data())
def test_kthvalue(data):
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1, min_size=1)))
    dim, keep = data.draw(dims_of(x.array.ndim)), data.draw(st.booleans())
    k = data.draw(st.integers(1, x.array.shape[dim]))
    expected = np.take(np.sort(x.array, dim), [k - 1], dim)
    values, indices = holdfast.kthvalue(x.tensor, k, dim, True)
    check(values, expected, x.dtype, 0)
    check(values, np.take_along_axis(x.array, indices.numpy(), dim), x.dtype, 0)
    shape = holdfast.kthvalue(x.tensor, k, dim, keep)[0].shape
    assert tuple(shape) == (expected if keep else expected.squeeze(dim)).shape


def lower_median(a, dim, skip):
    """Of one dimension, with NaN ignored or winning."""

    def one(row):
        real = row[~np.isnan(row)] if row.dtype.kind == "f" else row
        if not real.size or (not skip and real.size < row.size):
            return np.nan
        return np.sort(real)[(real.size - 1) // 2]

    return np.apply_along_axis(one, dim, a).astype(a.dtype)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@fixed
@given(data=st.data())
def test_median(name, data):
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1, min_size=1)))
    dim, skip = data.draw(dims_of(x.array.ndim)), name == "nanmedian"
    f = getattr(holdfast, name)
    values, indices = f(x.tensor, dim, True)
    expected = np.expand_dims(lower_median(x.array, dim, skip), dim)
    check(values, expected, x.dtype, 0)
    check(values, np.take_along_axis(x.array, indices.numpy(), dim), x.dtype, 0)
    check(f(x.tensor), lower_median(x.array.reshape(-1), 0, skip), x.dtype, 0)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@fixed
@given(data=st.data())
def test_quantile(name, data):
    x = data.draw(drawn(["float32", "float64"], shapes(1, min_size=1), "plain"))
    dim, keep = data.draw(dims_of(x.array.ndim)), data.draw(st.booleans())
    q = data.draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 2 / 3, 1.0]))
    how = data.draw(st.sampled_from(["linear", "lower", "higher", "midpoint"]))
    # lower and higher jump where q falls on an element but for a rounding.
    place = q * (x.array.shape[dim] - 1)
    if how != "linear" and abs(place - round(place)) < 1e-3:
        how = "linear"
    expected = getattr(np, name)(x.exact, q, dim, method=how, keepdims=keep)
    got = getattr(holdfast, name)(x.tensor, q, dim, keep, interpolation=how)
    check(got, expected, x.dtype, 1e-4)


@fixed
@given(data=st.data())
def test_unique(data):
    x = data.draw(drawn(REAL, shapes(), "plain"))
    values, inverse, counts = np.unique(
        x.array, return_inverse=True, return_counts=True
    )
    got = holdfast.unique(x.tensor, True, True, True)
    check(got[0], values, x.dtype, 0)
    check(got[1], inverse.reshape(x.array.shape), "int64")
    check(got[2], counts, "int64")


@fixed
@given(data=st.data())
def test_unique_consecutive(data):
    x = data.draw(drawn(REAL, shapes(1, 1), "plain"))
    a = x.array
    starts = np.r_[True, a[1:] != a[:-1]] if a.size else np.zeros(0, bool)
    got, inverse = holdfast.unique_consecutive(x.tensor, return_inverse=True)
    check(got, a[starts], x.dtype, 0)
    check(inverse, np.cumsum(starts) - 1, "int64")


@fixed
@given(data=st.data())
def test_searchsorted(data):
    dtype = data.draw(st.sampled_from(INTEGERS + ["float32", "float64"]))
    edges = data.draw(drawn(dtype, shapes(1, 1), "plain"))
    x = data.draw(drawn(dtype, shapes(), "plain"))
    right = data.draw(st.booleans())
    ordered = np.sort(edges.array)
    expected = np.searchsorted(ordered, x.array, "right" if right else "left")
    boundaries = holdfast.from_numpy(ordered)
    got = holdfast.searchsorted(boundaries, x.tensor, right=right)
    check(got, expected, "int64")
    check(holdfast.bucketize(x.tensor, boundaries, right=right), expected, "int64")


@fixed
@given(data=st.data())
def test_isin(data):
    x = data.draw(drawn(INTEGERS + ["float32", "float64"], shapes(), "plain"))
    among = data.draw(drawn(x.dtype, shapes(), "plain"))
    invert = data.draw(st.booleans())
    expected = np.isin(x.array, among.array, invert=invert)
    check(holdfast.isin(x.tensor, among.tensor, invert=invert), expected, "bool")


@fixed
@given(data=st.data())
def test_bincount(data):
    x = data.draw(drawn(INTEGERS, shapes(1, 1), "plain"))
    least = data.draw(st.integers(0, 12))
    expected = np.bincount(np.abs(x.array), minlength=least)
    check(holdfast.bincount(x.tensor.abs(), minlength=least), expected, "int64")


@fixed
@given(data=st.data())
def test_mode(data):
    x = data.draw(drawn(INTEGERS, shapes(1, min_size=1), "plain"))
    dim = data.draw(dims_of(x.array.ndim))

    def one(row):
        values, counts = np.unique(row, return_counts=True)
        return values[np.argmax(counts)]  # the smallest of the most frequent

    with warnings.catch_warnings():
        expected = np.apply_along_axis(one, dim, x.array)
    check(holdfast.mode(x.tensor, dim).values, expected, x.dtype)


covers("sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian")
covers("quantile", "nanquantile", "unique", "unique_consecutive", "searchsorted")
covers("bucketize", "isin", "bincount", "mode")
