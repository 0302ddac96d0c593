# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`out=` of functions that are composed of others: the table's own are in
test_binding.py."""

import numpy as np
import pytest

import holdfast as torch

X = np.random.default_rng(1).uniform(0.1, 0.9, (3, 3))
SYMMETRIC = X @ X.T + np.eye(3)


def x():
    return torch.tensor(X)


def symmetric():
    return torch.tensor(SYMMETRIC)


def row():
    return torch.tensor(X[0])


MATRIX, VECTOR, PAIR = (x,), (row,), (x, x)
CALLS = [
    *[
        (name, MATRIX, {})
        for name in """angle deg2rad frac isneginf isposinf logit nan_to_num rad2deg
        rot90 sgn signbit sinc square argsort msort count_nonzero max min nanmean nansum
        std triu_indices_ tril_indices_""".split()
        if not name.endswith("_")
    ],
    *[(name, PAIR, {}) for name in "mm logaddexp logaddexp2 xlogy dist".split()],
    *[(name, VECTOR * 2, {}) for name in "dot vdot outer inner kron".split()],
    ("addmm", (x, x, x), {"beta": 0.5}),
    ("addcmul", (x, x, x), {"value": 2}),
    ("addcdiv", (x, x, x), {}),
    ("lerp", (x, x, x), {}),
    ("mv", (x, row), {}),
    ("clamp_max", (x, 0.5), {}),
    ("diag", VECTOR, {}),
    ("diff", MATRIX, {}),
    ("max", (x, 1), {}),
    ("median", (x, 1), {}),
    ("sort", MATRIX, {}),
    ("topk", (x, 2), {}),
    ("kthvalue", (x, 2), {}),
    ("cummax", (x, 0), {}),
    ("mode", MATRIX, {}),
    ("aminmax", MATRIX, {"dim": 0}),
    ("norm", MATRIX, {}),
    ("logsumexp", (x, 0), {}),
    ("quantile", (x, 0.5), {}),
    ("roll", (x, 1), {}),
    ("histc", (x, 4), {}),
    ("isin", PAIR, {}),
    ("bucketize", (x, row), {}),
    ("float_power", (x, 2), {}),
    ("cross", PAIR, {"dim": 0}),
    ("zeros", (2, 3), {}),
    ("ones", ((2, 3),), {"dtype": torch.float64}),
    ("arange", (5,), {}),
    ("linspace", (0, 1, 5), {}),
    ("full", ((2,), 3.0), {}),
    ("normal", (0.0, 0.0, (2, 2)), {}),
    ("randint", (4, 5, (3,)), {}),
    ("linalg.inv", MATRIX, {}),
    ("linalg.det", MATRIX, {}),
    ("linalg.slogdet", MATRIX, {}),
    ("linalg.solve", PAIR, {}),
    ("linalg.cholesky", (symmetric,), {}),
    ("linalg.eigh", (symmetric,), {}),
    ("linalg.svd", MATRIX, {}),
    ("linalg.qr", MATRIX, {}),
    ("linalg.lu_factor", MATRIX, {}),
    ("linalg.vector_norm", MATRIX, {}),
    ("linalg.matrix_power", (x, 3), {}),
]


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name,makers,options", CALLS, ids=lambda v: str(v)[:20])
def test_out(name, makers, options):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)

    def arguments():
        return [m() if callable(m) else m for m in makers]

    expected = function(*arguments(), **options)
    # The right size, and one that has to grow.
    for size in (None, (0,)):
        out = [
            torch.empty(tuple(e.shape) if size is None else size, dtype=e.dtype)
            for e in as_tuple(expected)
        ]
        given = tuple(out) if isinstance(expected, tuple) else out[0]
        assert function(*arguments(), out=given, **options) is given
        for e, o in zip(as_tuple(expected), out):
            assert o.dtype is e.dtype and torch.equal(o, e)


def test_out_converts_but_does_not_narrow():
    a = torch.tensor([1.0, 4.0])
    wide = torch.empty(2, dtype=torch.float64)
    assert torch.square(a, out=wide).tolist() == [1.0, 16.0]
    whole = torch.empty(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output"):
        torch.square(a, out=whole)
    with pytest.raises(TypeError, match="'out' must be Tensor"):
        torch.square(a, out=5)
    with pytest.raises(TypeError, match="tuple of 2"):
        torch.sort(a, out=a)
    with pytest.raises(RuntimeError, match="don't support automatic"):
        torch.square(a.clone().requires_grad_(), out=wide)


def test_methods_have_no_out():
    with pytest.raises(TypeError, match="out"):
        torch.tensor([1.0, 2.0]).square(out=torch.empty(2))
