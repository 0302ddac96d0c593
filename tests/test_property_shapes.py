# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Views, joins and rearrangements of random tensors of every element type,
against NumPy: exactly equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_strategies import (
    ALL,
    broadcasting,
    check,
    covers,
    dims_of,
    drawn,
    fixed,
    shapes,
)

import holdfast as hf


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with hf.connect(daemon.address("shm"), default=True):
        yield


def same(x, got, expected):
    """Equal to the last bit, and of x's type."""
    check(got, expected, x.dtype, 0)


@fixed
@given(data=st.data())
def test_order_of_dimensions(data):
    x = data.draw(drawn(ALL))
    a, t, rank = x.array, x.tensor, x.array.ndim
    order = data.draw(st.permutations(range(rank)))
    signed = [d - rank if data.draw(st.booleans()) else d for d in order]
    same(x, t.permute(*signed) if rank else t.permute(()), a.transpose(order))
    if not rank:
        return
    one, two = data.draw(dims_of(rank)), data.draw(dims_of(rank))
    for f in (hf.transpose, hf.swapaxes, hf.swapdims):
        same(x, f(t, one, two), a.swapaxes(one, two))
    for f in (hf.movedim, hf.moveaxis):
        same(x, f(t, one, two), np.moveaxis(a, one, two))


@fixed
@given(data=st.data())
def test_reshape(data):
    x = data.draw(drawn(ALL))
    a, t = x.array, x.tensor
    # Neighbours joined, then a size split off.
    groups, shape = data.draw(st.lists(st.booleans(), max_size=5)), []
    for i, n in enumerate(a.shape):
        if shape and i < len(groups) and groups[i]:
            shape[-1] *= n
        else:
            shape.append(n)
    if shape and shape[-1] % 2 == 0 and data.draw(st.booleans()):
        shape[-1:] = [2, shape[-1] // 2]
    if a.size and shape and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(shape) - 1))
        expected = a.reshape(shape)
        shape[at] = -1
    else:
        expected = a.reshape(shape)
    same(x, hf.reshape(t, shape), expected)
    same(x, t.contiguous().view(shape), expected)
    same(x, hf.ravel(t), a.ravel())
    if a.ndim:
        first = data.draw(st.integers(0, a.ndim - 1))
        last = data.draw(st.integers(first, a.ndim - 1))
        joined = a.shape[first : last + 1]
        shape = (*a.shape[:first], int(np.prod(joined)), *a.shape[last + 1 :])
        flat = hf.flatten(t, first, last)
        same(x, flat, a.reshape(shape))
        same(x, hf.unflatten(flat, first, joined), a)


@fixed
@given(data=st.data())
def test_sizes_of_one(data):
    x = data.draw(drawn(ALL))
    a, t = x.array, x.tensor
    same(x, hf.squeeze(t), a.squeeze())
    dim = data.draw(dims_of(a.ndim + 1))
    same(x, hf.unsqueeze(t, dim), np.expand_dims(a, dim))
    if a.ndim:
        dim = data.draw(dims_of(a.ndim))
        same(x, hf.squeeze(t, dim), a.squeeze(dim) if a.shape[dim] == 1 else a)
    same(x, hf.atleast_1d(t), np.atleast_1d(a))
    same(x, hf.atleast_2d(t), np.atleast_2d(a))


@fixed
@given(data=st.data())
def test_broadcast(data):
    left, right = data.draw(broadcasting())
    x = data.draw(drawn(ALL, left))
    common = np.broadcast_shapes(left, right)
    expected = np.broadcast_to(x.array, common)
    same(x, hf.broadcast_to(x.tensor, common), expected)
    same(x, x.tensor.expand(common), expected)
    assert tuple(hf.broadcast_shapes(left, right)) == common
    same(x, hf.broadcast_tensors(x.tensor, hf.zeros(right))[0], expected)


@fixed
@given(data=st.data())
def test_join(data):
    x = data.draw(drawn(ALL, shapes(1)))
    dim = data.draw(dims_of(x.array.ndim))
    parts = [x]
    for _ in range(data.draw(st.integers(0, 3))):
        shape = list(x.array.shape)
        shape[dim] = data.draw(st.integers(0, 4))
        parts.append(data.draw(drawn(x.dtype, tuple(shape))))
    expected = np.concatenate([p.array for p in parts], dim)
    for f in (hf.cat, hf.concat, hf.concatenate):
        same(x, f([p.tensor for p in parts], dim), expected)
    like = [data.draw(drawn(x.dtype, x.array.shape)) for _ in range(2)]
    dim = data.draw(dims_of(x.array.ndim + 1))
    expected = np.stack([p.array for p in like], dim)
    same(x, hf.stack([p.tensor for p in like], dim), expected)
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        expected = getattr(np, name)([p.array for p in like])
        same(x, getattr(hf, name)([p.tensor for p in like]), expected)


@fixed
@given(data=st.data())
def test_split(data):
    x = data.draw(drawn(ALL, shapes(1)))
    a, t = x.array, x.tensor
    dim, n = data.draw(dims_of(a.ndim)), data.draw(st.integers(1, 5))
    size = a.shape[dim]
    got = hf.split(t, n, dim)
    starts = range(n, max(size, 1), n)
    expected = np.split(a, starts, dim)
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        same(x, g, e)
    got, expected = hf.tensor_split(t, n, dim), np.array_split(a, n, dim)
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        same(x, g, e)
    each = max(1, -(-size // n))
    got = hf.chunk(t, n, dim)
    if size:
        assert len(got) == -(-size // each)
    for i, g in enumerate(got):
        same(x, g, np.take(a, range(i * each, min(size, (i + 1) * each)), dim))
    for i, g in enumerate(hf.unbind(t, dim)):
        same(x, g, np.take(a, i, dim))
    start = data.draw(st.integers(0, size))
    length = data.draw(st.integers(0, size - start))
    part = np.take(a, range(start, start + length), dim)
    same(x, hf.narrow(t, dim, start, length), part)


@fixed
@given(data=st.data())
def test_rearranged(data):
    x = data.draw(drawn(ALL, shapes(1, long=False)))
    a, t, rank = x.array, x.tensor, x.array.ndim
    dims = tuple(data.draw(st.sets(st.integers(0, rank - 1))))
    same(x, hf.flip(t, dims), np.flip(a, dims))
    shifts = tuple(data.draw(st.integers(-7, 7)) for _ in dims)
    if dims:
        same(x, hf.roll(t, shifts, dims), np.roll(a, shifts, dims))
    same(x, hf.roll(t, 3), np.roll(a, 3))
    counts = tuple(data.draw(st.integers(0, 2)) for _ in range(rank))
    same(x, t.repeat(*counts), np.tile(a, counts))
    same(x, hf.tile(t, counts[-1:]), np.tile(a, counts[-1:]))
    dim, n = data.draw(dims_of(rank)), data.draw(st.integers(0, 3))
    same(x, hf.repeat_interleave(t, n, dim), np.repeat(a, n, dim))
    each = data.draw(drawn("int64", (a.shape[dim],), "plain"))
    got = hf.repeat_interleave(t, each.tensor.abs(), dim)
    same(x, got, np.repeat(a, np.abs(each.array), dim))


@fixed
@given(data=st.data())
def test_planes(data):
    x = data.draw(drawn(ALL, shapes(2)))
    a, t, k = x.array, x.tensor, data.draw(st.integers(-5, 5))
    if x.dtype[:7] != "complex":
        same(x, hf.tril(t, k), np.tril(a, k))
        same(x, hf.triu(t, k), np.triu(a, k))
    one, two = data.draw(st.permutations(range(a.ndim)))[:2]
    same(x, hf.diagonal(t, k, one, two), np.diagonal(a, k, one, two))
    turns = data.draw(st.integers(-4, 4))
    same(x, hf.rot90(t, turns, (one, two)), np.rot90(a, turns, (one, two)))
    same(x, hf.fliplr(t), np.fliplr(a))
    same(x, hf.flipud(t), np.flipud(a))


@fixed
@given(data=st.data())
def test_diag(data):
    x = data.draw(drawn(ALL, shapes(1, 2, long=False)))
    k = data.draw(st.integers(-3, 3))
    same(x, hf.diag(x.tensor, k), np.diag(x.array, k))


@fixed
@given(data=st.data())
def test_pad(data):
    x = data.draw(drawn(ALL, shapes(1, long=False)))
    a = x.array
    n = data.draw(st.integers(1, a.ndim))
    widths = [
        (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in range(n)
    ]
    flat = [w for pair in widths for w in pair]
    full = [(0, 0)] * (a.ndim - n) + widths[::-1]
    got = hf.nn.functional.pad(x.tensor, flat, value=1)
    same(x, got, np.pad(a, full, constant_values=1))


@fixed
@given(data=st.data())
def test_windows(data):
    x = data.draw(drawn(ALL, shapes(1, min_size=1)))
    dim = data.draw(st.integers(0, x.array.ndim - 1))
    size = data.draw(st.integers(1, x.array.shape[dim]))
    step = data.draw(st.integers(1, 3))
    every = np.lib.stride_tricks.sliding_window_view(x.array, size, dim)
    expected = every[(slice(None),) * dim + (slice(None, None, step),)]
    same(x, x.tensor.unfold(dim, size, step), expected)


@fixed
@given(data=st.data())
def test_meshgrid(data):
    parts = [data.draw(drawn("int32", shapes(1, 1, long=False))) for _ in range(3)]
    how = data.draw(st.sampled_from(["ij", "xy"]))
    got = hf.meshgrid(*(p.tensor for p in parts), indexing=how)
    for g, e in zip(got, np.meshgrid(*(p.array for p in parts), indexing=how)):
        check(g, e, "int32", 0)


covers(
    *"""
    permute transpose swapaxes swapdims movedim moveaxis reshape view ravel flatten
    unflatten squeeze unsqueeze atleast_1d atleast_2d broadcast_to expand
    broadcast_shapes broadcast_tensors cat concat concatenate stack hstack vstack
    dstack column_stack split tensor_split chunk unbind narrow flip roll repeat tile
    repeat_interleave tril triu diagonal rot90 fliplr flipud diag nn.functional.pad
    unfold meshgrid
    """.split()
)
