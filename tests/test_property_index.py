# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing elements by random keys and indices, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_strategies import (
    ALL,
    FLOATS,
    INTEGERS,
    check,
    covers,
    dims_of,
    drawn,
    fixed,
    numpy_type,
    shapes,
)

import holdfast as hf


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with hf.connect(daemon.address("shm"), default=True):
        yield


@st.composite
def keys(draw, shape):
    """(key for NumPy, key for Holdfast) that reads a tensor of this shape:
    numbers, slices, None, ..., masks and index tensors (all of one length)."""
    ours, theirs, dim = [], [], 0
    length = draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 999)))

    def both(part, tensor=None):
        theirs.append(part)
        ours.append(part if tensor is None else tensor)

    used_ellipsis = False
    while dim < len(shape) and draw(st.integers(0, 6)):
        size = shape[dim]
        kind = draw(
            st.sampled_from(
                ["number", "slice", "slice", "none", "...", "index", "mask"]
            )
        )
        if kind == "number" and size:
            both(draw(st.integers(-size, size - 1)))
        elif kind == "none":
            both(None)
            continue
        elif kind == "...":
            if used_ellipsis:
                continue
            used_ellipsis = True
            both(Ellipsis)
            # What follows counts from the end; keep to one of what is left.
            dim = draw(st.integers(dim, len(shape)))
            continue
        elif kind == "index" and size:
            index = rng.integers(-size, size, length)
            form = draw(st.integers(0, 2))
            tensor = hf.from_numpy(index)
            both(index, [index.tolist(), tensor, tensor.int()][form])
        elif kind == "mask" and size:
            # As many as the indices have, so that they go together.
            mask = np.zeros(size, bool)
            mask[rng.permutation(size)[:length]] = True
            if mask.sum() != length:
                mask[:] = False
                both(slice(None))
            else:
                both(mask, hf.from_numpy(mask))
        else:
            low, high = draw(st.integers(-6, 6)), draw(st.integers(-6, 6))
            start = draw(st.sampled_from([None, low]))
            stop = draw(st.sampled_from([None, high]))
            both(slice(start, stop, draw(st.sampled_from([None, 1, 2, 3]))))
        dim += 1
    return tuple(theirs), tuple(ours)


def views_first(a, key):
    """(view, key) so that view[key] is PyTorch's a[key]: numbers, slices and None
    make a view first, where NumPy has numbers among the indices."""
    basic = tuple(slice(None) if isinstance(k, np.ndarray) else k for k in key)
    if Ellipsis not in basic:
        basic += (Ellipsis,)  # an array, also where it has no dimensions
    rest = [slice(None) if isinstance(k, slice) or k is None else k for k in key]
    return a[basic], tuple(k for k in rest if not isinstance(k, int))


@fixed
@given(data=st.data())
def test_read(data):
    x = data.draw(drawn(ALL))
    theirs, ours = data.draw(keys(x.array.shape))
    try:
        view, rest = views_first(x.array, theirs)
        expected = view[rest]
    except IndexError:  # what follows an ellipsis may be out of range
        with pytest.raises(IndexError):
            x.tensor[ours].numpy()
        return
    check(x.tensor[ours], expected, x.dtype, 0)


def distinct_places(shape, key):
    view, rest = views_first(np.arange(int(np.prod(shape))).reshape(shape), key)
    return np.unique(view[rest]).size


@fixed
@given(data=st.data())
def test_write(data):
    x = data.draw(drawn(ALL))
    theirs, ours = data.draw(keys(x.array.shape))
    a, t = x.array.copy(), x.tensor.clone()
    try:
        view, rest = views_first(a, theirs)
        part = view[rest]
    except IndexError:
        with pytest.raises(IndexError):
            t[ours] = 0
            t.numpy()
        return
    # A number, or elements that broadcast. Of repeated indices any may stay,
    # so all write the same.
    value = data.draw(drawn(x.dtype, part.shape[1:], "plain"))
    if data.draw(st.booleans()):
        view[rest] = 1
        t[ours] = 1
    elif distinct_places(a.shape, theirs) == part.size:
        view[rest] = value.array
        t[ours] = value.tensor
    check(t, a, x.dtype, 0)


@fixed
@given(data=st.data())
def test_read_by_a_mask(data):
    x = data.draw(drawn(ALL))
    rank = data.draw(st.integers(0, x.array.ndim))
    m = data.draw(drawn("bool", x.array.shape[:rank]))
    if rank:
        check(x.tensor[m.tensor], x.array[m.array], x.dtype, 0)
    full = data.draw(drawn("bool", x.array.shape))
    check(hf.masked_select(x.tensor, full.tensor), x.array[full.array], x.dtype, 0)
    a, t = x.array.copy(), x.tensor.clone()
    a[m.array] = 1
    t[m.tensor] = 1
    check(t, a, x.dtype, 0)
    expected = np.where(full.array, 1, x.array)
    check(hf.masked_fill(x.tensor, full.tensor, 1), expected, x.dtype, 0)
    check(hf.nonzero(full.tensor), np.argwhere(full.array), "int64")
    check(hf.argwhere(x.tensor), np.argwhere(x.array), "int64")


@fixed
@given(data=st.data())
def test_masked_scatter(data):
    x = data.draw(drawn(ALL, values="plain"))
    m = data.draw(drawn("bool", x.array.shape))
    source = data.draw(drawn(x.dtype, x.array.shape, "plain"))
    expected = x.array.copy()
    expected[m.array] = source.array.ravel()[: int(m.array.sum())]
    got = hf.masked_scatter(x.tensor, m.tensor, source.tensor)
    check(got, expected, x.dtype, 0)


@st.composite
def scattered(draw, dtypes, unique=False):
    """A tensor, a dimension, and an index and a source that fit scatter()."""
    x = draw(drawn(dtypes, shapes(1, 4, 1), "plain"))
    dim = draw(dims_of(x.array.ndim))
    shape = [draw(st.integers(0, n)) for n in x.array.shape]
    size = x.array.shape[dim]
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    if unique:
        shape[dim] = draw(st.integers(0, size))
        index = np.argsort(
            rng.random(
                (*shape[: dim % len(shape)], size, *shape[dim % len(shape) + 1 :])
            ),
            dim,
        )
        index = np.take(index, range(shape[dim]), dim)
    else:
        shape[dim] = draw(st.integers(0, 6))
        index = rng.integers(0, size, shape)
    source = draw(drawn(x.dtype, tuple(shape), "plain"))
    return x, dim, index, source


def places(index, dim, within):
    """The key that scatter()'s index stands for."""
    key = list(np.indices(index.shape))
    key[dim] = index
    return tuple(key)


@fixed
@given(case=scattered(ALL, unique=True))
def test_gather_and_scatter(case):
    x, dim, index, source = case
    i = hf.from_numpy(index)
    key = places(index, dim, x.array)
    check(hf.gather(x.tensor, dim, i), x.array[key], x.dtype, 0)
    expected = x.array.copy()
    expected[key] = source.array
    check(hf.scatter(x.tensor, dim, i, source.tensor), expected, x.dtype, 0)


@fixed
@given(case=scattered(INTEGERS + FLOATS))
def test_scatter_add(case):
    x, dim, index, source = case
    key = places(index, dim, x.array)
    expected = x.exact.copy()
    np.add.at(expected, key, source.exact.astype(expected.dtype))
    i = hf.from_numpy(index)
    got = hf.scatter_add(x.tensor, dim, i, source.tensor)
    check(got, expected, x.dtype, 0.05 if x.dtype in ("float16", "bfloat16") else None)
    wide = x.tensor.double()
    for reduce, f in [
        ("amax", np.maximum),
        ("amin", np.minimum),
        ("prod", np.multiply),
    ]:
        expected = x.exact.astype("float64")
        f.at(expected, key, source.exact.astype("float64"))
        got = hf.scatter_reduce(wide, dim, i, source.tensor.double(), reduce)
        check(got, expected, "float64")


@fixed
@given(data=st.data())
def test_rows(data):
    x = data.draw(drawn(INTEGERS + FLOATS, shapes(1, min_size=1), "plain"))
    dim = data.draw(dims_of(x.array.ndim))
    size = x.array.shape[dim]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    index = rng.integers(0, size, data.draw(st.integers(0, 6)))
    i = hf.from_numpy(index)
    if data.draw(st.booleans()):
        i = i.int()
    check(hf.index_select(x.tensor, dim, i), np.take(x.array, index, dim), x.dtype, 0)
    shape = list(x.array.shape)
    shape[dim] = len(index)
    source = data.draw(drawn(x.dtype, tuple(shape), "plain"))
    key = (slice(None),) * (dim % x.array.ndim) + (index,)
    expected = x.exact.copy()
    np.add.at(expected, key, source.exact)
    got = hf.index_add(x.tensor, dim, i, source.tensor)
    check(got, expected, x.dtype, 0.05 if x.dtype in ("float16", "bfloat16") else None)
    expected = x.array.copy()
    expected[key] = 2
    check(hf.index_fill(x.tensor, dim, i.long(), 2), expected, x.dtype, 0)
    if len(set(index.tolist())) == len(index):
        expected[key] = source.array
        got = hf.index_copy(x.tensor, dim, i.long(), source.tensor)
        expected = x.array.copy()
        expected[key] = source.array
        check(got, expected, x.dtype, 0)


@fixed
@given(data=st.data())
def test_flat(data):
    x = data.draw(drawn(ALL, shapes(min_size=1)))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    shape = data.draw(shapes(0, 3, long=False))
    index = rng.integers(-x.array.size, x.array.size, shape)
    check(hf.take(x.tensor, hf.from_numpy(index)), np.take(x.array, index), x.dtype, 0)
    if x.array.ndim:
        dim = data.draw(dims_of(x.array.ndim))
        order = np.argsort(rng.random(x.array.shape), dim)
        expected = np.take_along_axis(x.array, order, dim)
        got = hf.take_along_dim(x.tensor, hf.from_numpy(order), dim)
        check(got, expected, x.dtype, 0)


@fixed
@given(data=st.data())
def test_index_put_accumulates(data):
    x = data.draw(drawn(["int32", "int64", "float64"], shapes(2, 3, 1), "plain"))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    n = data.draw(st.integers(0, 6))
    key = tuple(rng.integers(-s, s, n) for s in x.array.shape[:2])
    values = data.draw(drawn(x.dtype, (n, *x.array.shape[2:]), "plain"))
    expected = x.array.copy()
    np.add.at(expected, key, values.array)
    ours = tuple(hf.from_numpy(k) for k in key)
    got = hf.index_put(x.tensor, ours, values.tensor, accumulate=True)
    check(got, expected, x.dtype)


@fixed
@given(data=st.data())
def test_an_index_out_of_range(data):
    """An IndexError at the next read, and the tensor as it was."""
    x = data.draw(drawn(["float32", "int64"], shapes(1, 3, 1), "plain"))
    dim = data.draw(st.integers(0, x.array.ndim - 1))
    size = x.array.shape[dim]
    bad = data.draw(st.sampled_from([size, -size - 1, 2**40, -(2**62)]))
    index = hf.tensor([0, bad])
    key = (slice(None),) * dim + (index,)
    with pytest.raises(IndexError):
        x.tensor[key].numpy()
    t = x.tensor.clone()
    with pytest.raises(IndexError):
        t[key] = 5
        t.numpy()
    with pytest.raises((IndexError, RuntimeError)):
        hf.index_select(x.tensor, dim, index).numpy()
    assert t.numpy().dtype == numpy_type(x.dtype)


covers(
    *"""
    index index_put index_mask mask_put select slice masked_select masked_fill nonzero
    argwhere masked_scatter gather scatter scatter_add scatter_reduce index_select
    index_add index_fill index_copy take take_along_dim
    """.split()
)
