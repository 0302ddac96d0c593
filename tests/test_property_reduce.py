# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of random tensors, over random dimensions, against
NumPy and SciPy in float64."""

import warnings

import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given
from hypothesis import strategies as st
from property_strategies import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    REAL,
    category,
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


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def int64_of_integers(dtype):
    return "int64" if category(dtype) < 2 else dtype


def same(dtype):
    return dtype


def always(result):
    return lambda dtype: result


def total(f):
    """Sums and products: integers wrap at 64 bits."""
    return lambda a, **k: f(a if a.dtype.kind in "fc" else a.astype("int64"), **k)


# Reference over axis and keepdims, element types, type of the result, and
# whether no elements at all are an error.
OVER_DIMS = {
    "sum": (total(np.sum), REAL + COMPLEX, int64_of_integers, False),
    "mean": (np.mean, FLOATS + COMPLEX, same, False),
    "nansum": (total(np.nansum), REAL, int64_of_integers, False),
    "nanmean": (np.nanmean, FLOATS, same, False),
    "amax": (np.max, REAL, same, True),
    "amin": (np.min, REAL, same, True),
    "var": (lambda a, **k: np.var(a, ddof=1, **k), FLOATS, same, False),
    "std": (lambda a, **k: np.std(a, ddof=1, **k), FLOATS, same, False),
    "logsumexp": (sp.logsumexp, FLOATS, same, False),
}
ONE_DIM = {
    "argmax": (np.argmax, INTEGERS + FLOATS, always("int64"), True),
    "argmin": (np.argmin, INTEGERS + FLOATS, always("int64"), True),
    "all": (np.all, REAL, always("bool"), False),
    "any": (np.any, REAL, always("bool"), False),
    "prod": (total(np.prod), REAL, int64_of_integers, False),
}
covers(*OVER_DIMS, *ONE_DIM)


@st.composite
def some_dims(draw, rank):
    """None, or some of the dimensions, from either end."""
    if rank == 0 or draw(st.integers(0, 3)) == 3:
        return None
    chosen = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return tuple(d - rank if draw(st.booleans()) else d for d in sorted(chosen))


def reduced(name, x, axis, keep, row):
    reference, _, result, fails = row
    f = getattr(holdfast, name)
    empty = any(x.array.shape[d] == 0 for d in axis or ()) or (
        axis is None and x.array.size == 0
    )
    one = name in ONE_DIM and axis is not None
    arguments = {}
    if axis is not None:
        arguments = {"dim": axis[0] if one else axis, "keepdim": keep}
    if name == "logsumexp" and axis is None:
        arguments = {"dim": tuple(range(x.array.ndim))}
    if fails and empty:
        with pytest.raises((RuntimeError, IndexError)):
            f(x.tensor, **arguments).numpy()
        return
    over = axis[0] if one else axis
    options = {"axis": over}
    if axis is not None:
        options["keepdims"] = keep
    if name == "logsumexp":
        expected = np.log(np.sum(np.exp(x.exact), **options))
    else:
        expected = reference(x.exact, **options)
    # A logarithm and the maximum that is added to it may cancel, each rounded.
    rounded = x.dtype in ("float16", "bfloat16")
    near = 3e-2 if name == "logsumexp" and rounded else 3e-4
    check(f(x.tensor, **arguments), expected, result(x.dtype), 1e-5, near)


@pytest.mark.parametrize("name", OVER_DIMS)
@fixed
@given(data=st.data())
def test_over_dims(name, data):
    x = data.draw(drawn(OVER_DIMS[name][1], values=("plain", "special")))
    if x.dtype in COMPLEX and not np.isfinite(x.storage).all():
        return  # NumPy spreads NaN between the parts
    axis = data.draw(some_dims(x.array.ndim))
    reduced(name, x, axis, data.draw(st.booleans()), OVER_DIMS[name])


@pytest.mark.parametrize("name", ONE_DIM)
@fixed
@given(data=st.data())
def test_over_one_dim(name, data):
    x = data.draw(drawn(ONE_DIM[name][1], shapes(1), values=("plain", "special")))
    axis = data.draw(st.none() | st.tuples(dims_of(x.array.ndim)))
    reduced(name, x, axis, data.draw(st.booleans()), ONE_DIM[name])


@pytest.mark.parametrize("name", ["max", "min", "cummax", "cummin"])
@fixed
@given(data=st.data())
def test_extremes_and_their_places(name, data):
    """Where equals may have several places, what lies at the place counts."""
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1, min_size=1)))
    dim = data.draw(dims_of(x.array.ndim))
    values, indices = getattr(holdfast, name)(x.tensor, dim)
    scan = name.startswith("cum")
    f = np.maximum if name.endswith("max") else np.minimum
    expected = f.accumulate(x.array, dim) if scan else f.reduce(x.array, dim)
    check(values, expected, x.dtype, 0)
    places = indices.numpy() if scan else np.expand_dims(indices.numpy(), dim)
    found = np.take_along_axis(x.array, places, dim)
    check(values, found if scan else found.squeeze(dim), x.dtype, 0)


@fixed
@given(x=drawn(INTEGERS + FLOATS, shapes(min_size=1)))
def test_extremes_of_all(x):
    check(holdfast.max(x.tensor), np.max(x.array), x.dtype, 0)
    check(holdfast.min(x.tensor), np.min(x.array), x.dtype, 0)
    low, high = holdfast.aminmax(x.tensor)
    check(low, np.min(x.array), x.dtype, 0)
    check(high, np.max(x.array), x.dtype, 0)


@fixed
@given(data=st.data())
def test_count_nonzero(data):
    x = data.draw(drawn(REAL))
    axis = data.draw(some_dims(x.array.ndim))
    expected = np.count_nonzero(x.array, axis)
    check(holdfast.count_nonzero(x.tensor, axis), expected, "int64")


@pytest.mark.parametrize("p", [0, 1, 2, 3, np.inf, -np.inf])
@fixed
@given(data=st.data())
def test_norm(p, data):
    x = data.draw(drawn(FLOATS + COMPLEX, shapes(min_size=1), values="plain"))
    axis = data.draw(some_dims(x.array.ndim))
    keep = axis is not None and data.draw(st.booleans())
    a = np.abs(x.exact)
    options = {"axis": axis, "keepdims": keep}
    if p == 0:
        expected = np.sum(a != 0, **options)
    elif np.isinf(p):
        expected = (np.max if p > 0 else np.min)(a, **options)
    else:
        expected = np.sum(a**p, **options) ** (1 / p)
    dtype = {"complex64": "float32", "complex128": "float64"}.get(x.dtype, x.dtype)
    check(holdfast.norm(x.tensor, p, axis, keep), expected, dtype, 1e-4)
    check(holdfast.linalg.vector_norm(x.tensor, p, axis, keep), expected, dtype, 1e-4)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@fixed
@given(data=st.data())
def test_softmax(name, data):
    x = data.draw(drawn(FLOATS, values=("plain", "special")))
    dim = data.draw(dims_of(x.array.ndim))
    if x.array.size == 0:
        expected = x.exact
    else:
        a = np.atleast_1d(x.exact)
        e = np.exp(a - np.max(a, dim, keepdims=True))
        s = e / e.sum(dim, keepdims=True)
        if name == "log_softmax":
            high = np.max(a, dim, keepdims=True)
            s = a - high - np.log(e.sum(dim, keepdims=True))
        expected = s.reshape(x.array.shape)
    check(getattr(holdfast, name)(x.tensor, dim), expected, x.dtype, 1e-4)


SCANS = {
    "cumsum": (total(np.cumsum), REAL, int64_of_integers),
    "cumprod": (total(np.cumprod), REAL, int64_of_integers),
    "logcumsumexp": (np.logaddexp.accumulate, FLOATS, same),
}


@pytest.mark.parametrize("name", SCANS)
@fixed
@given(data=st.data())
def test_scans(name, data):
    reference, dtypes, result = SCANS[name]
    values = "plain" if name == "logcumsumexp" else ("plain", "special")
    x = data.draw(drawn(dtypes, shapes(long=False), values))
    dim = data.draw(dims_of(x.array.ndim))
    a = np.atleast_1d(x.exact)
    expected = reference(a, axis=dim).reshape(x.array.shape)
    check(getattr(holdfast, name)(x.tensor, dim), expected, result(x.dtype), 1e-3)


@fixed
@given(data=st.data())
def test_diff(data):
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1), values="plain"))
    dim, n = data.draw(dims_of(x.array.ndim)), data.draw(st.integers(0, 3))
    expected = np.diff(x.array, n, dim)
    check(holdfast.diff(x.tensor, n, dim), expected, x.dtype, 0.02)


@fixed
@given(data=st.data())
def test_trapezoid(data):
    x = data.draw(drawn(["float32", "float64"], shapes(1, min_size=1), "plain"))
    dim = data.draw(dims_of(x.array.ndim))
    expected = np.trapz(x.exact, dx=0.5, axis=dim)
    check(holdfast.trapezoid(x.tensor, dx=0.5, dim=dim), expected, x.dtype, 1e-4)


covers("max", "min", "cummax", "cummin", "aminmax", "count_nonzero", "norm")
covers("linalg.vector_norm", "softmax", "log_softmax", *SCANS, "diff", "trapezoid")
