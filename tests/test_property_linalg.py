# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Products, factorisations and Fourier transforms of random tensors, against
NumPy; what is not unique by what it multiplies to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_strategies import (
    FLOATS,
    INTEGERS,
    broadcasting,
    check,
    covers,
    drawn,
    fixed,
    shapes,
)

import holdfast as hf

WIDE = ["float32", "float64"]
LOOSE = {"float32": 2e-3, "float64": 1e-7}


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with hf.connect(daemon.address("shm"), default=True):
        yield


@st.composite
def operands(draw, dtypes):
    """Two that matmul() takes, with batches that broadcast."""
    n, k, m = (draw(st.integers(0, 5)) for _ in range(3))
    if draw(st.integers(0, 4)) == 4:
        n, k = draw(st.sampled_from([7, 17, 40])), draw(st.sampled_from([8, 33]))
    left, right = draw(broadcasting(2, 3))
    dtype = draw(st.sampled_from(dtypes))
    one, two = (*left, n, k), (*right, k, m)
    if draw(st.integers(0, 4)) == 4:
        one = (k,)
    if draw(st.integers(0, 4)) == 4:
        two = (k,)
    return draw(drawn(dtype, one, "plain")), draw(drawn(dtype, two, "plain"))


@fixed
@given(pair=operands(INTEGERS + FLOATS))
def test_matmul(pair):
    x, y = pair
    expected = np.matmul(x.exact, y.exact)
    loose = 0.05 if x.dtype in ("float16", "bfloat16") else 1e-4
    check(hf.matmul(x.tensor, y.tensor), expected, x.dtype, loose)
    if x.array.ndim == y.array.ndim == 2:
        check(hf.mm(x.tensor, y.tensor), expected, x.dtype, loose)
    if x.array.ndim == y.array.ndim == 3 and x.array.shape[0] == y.array.shape[0]:
        check(hf.bmm(x.tensor, y.tensor), expected, x.dtype, loose)
    if x.array.ndim == 2 and y.array.ndim == 1:
        check(hf.mv(x.tensor, y.tensor), expected, x.dtype, loose)
    if x.array.ndim == y.array.ndim == 1:
        check(hf.dot(x.tensor, y.tensor), expected, x.dtype, loose)


@fixed
@given(data=st.data())
def test_other_products(data):
    x = data.draw(drawn(WIDE, shapes(1, 3), "plain"))
    y = data.draw(drawn(x.dtype, shapes(1, 3), "plain"))
    got = hf.tensordot(x.tensor, y.tensor, 0)
    check(got, np.tensordot(x.exact, y.exact, 0), x.dtype, 1e-4)
    check(hf.kron(x.tensor, y.tensor), np.kron(x.exact, y.exact), x.dtype, 1e-4)
    if x.array.ndim == y.array.ndim == 1:
        check(hf.outer(x.tensor, y.tensor), np.outer(x.exact, y.exact), x.dtype)
    z = data.draw(drawn(x.dtype, x.array.shape, "plain"))
    dims = list(range(x.array.ndim))
    expected = np.tensordot(x.exact, z.exact, (dims, dims))
    check(hf.tensordot(x.tensor, z.tensor, (dims, dims)), expected, x.dtype, 1e-2)
    expected = (x.exact * z.exact).sum(-1)
    check(hf.linalg.vecdot(x.tensor, z.tensor), expected, x.dtype, 1e-2)
    got = hf.einsum("...i,...i->...", x.tensor, z.tensor)
    check(got, expected, x.dtype, 1e-2)


@st.composite
def square(draw, symmetric=False, least=0):
    """A batch of well-conditioned matrices."""
    n = draw(st.integers(least, 6))
    batch = draw(shapes(0, 2, 1, long=False))
    x = draw(drawn(WIDE, (*batch, n, n), "plain"))
    shifted = x.tensor * 0.1 + hf.eye(n, dtype=x.tensor.dtype)
    if symmetric:
        shifted = shifted @ shifted.mT
    if draw(st.booleans()):
        shifted = shifted.mT
    return shifted, np.array(shifted.numpy()).astype("float64"), x.dtype


@fixed
@given(data=st.data())
def test_solve_and_inverse(data):
    a, exact, dtype = data.draw(square())
    shape = (*exact.shape[:-1], data.draw(st.integers(0, 3)))
    b = data.draw(drawn(dtype, shape, "plain"))
    loose = LOOSE[dtype]
    inverse = np.linalg.inv(exact)
    check(hf.linalg.inv(a), inverse, dtype, loose)
    check(hf.linalg.solve(a, b.tensor), inverse @ b.exact, dtype, loose)
    check(hf.linalg.det(a), np.linalg.det(exact), dtype, loose)
    sign, log = np.linalg.slogdet(exact)
    got = hf.linalg.slogdet(a)
    check(got[0], sign, dtype, loose)
    check(got[1], log, dtype, loose)
    check(hf.linalg.pinv(a), inverse, dtype, loose)
    n = data.draw(st.integers(-3, 3))
    expected = np.linalg.matrix_power(exact, n)
    check(hf.linalg.matrix_power(a, n), expected, dtype, 10 * loose)
    upper = data.draw(st.booleans())
    triangle = np.triu(exact) if upper else np.tril(exact)
    expected = np.linalg.inv(triangle) @ b.exact
    got = hf.linalg.solve_triangular(a, b.tensor, upper=upper)
    check(got, expected, dtype, loose)


@fixed
@given(data=st.data())
def test_symmetric(data):
    a, exact, dtype = data.draw(square(symmetric=True))
    loose = LOOSE[dtype]
    check(hf.linalg.cholesky(a), np.linalg.cholesky(exact), dtype, loose)
    values, vectors = hf.linalg.eigh(a)
    check(values, np.linalg.eigvalsh(exact), dtype, loose)
    check(hf.linalg.eigvalsh(a), np.linalg.eigvalsh(exact), dtype, loose)
    again = vectors @ hf.diag_embed(values) @ vectors.mT
    check(again, exact, dtype, loose)


@fixed
@given(data=st.data())
def test_factors(data):
    shape = data.draw(shapes(2, 4, long=False))
    x = data.draw(drawn(WIDE, shape, "plain"))
    a, loose = x.tensor, LOOSE[x.dtype]
    q, r = hf.linalg.qr(a)
    check(q @ r, x.exact, x.dtype, loose)
    check(q.mT @ q, np.broadcast_to(np.eye(q.shape[-1]), (q.mT @ q).shape), None, loose)
    p, low, up = hf.linalg.lu(a)
    check(p @ low @ up, x.exact, x.dtype, loose)
    u, s, v = hf.linalg.svd(a, full_matrices=False)
    check(u @ hf.diag_embed(s) @ v, x.exact, x.dtype, loose)
    if x.array.size:
        expected = np.linalg.svd(x.exact, compute_uv=False)
        check(s, expected, x.dtype, loose)
        check(hf.linalg.svdvals(a), expected, x.dtype, loose)
        for order in ("fro", "nuc", 1, -1, 2, np.inf, -np.inf):
            expected = np.linalg.norm(x.exact, order, (-2, -1))
            check(hf.linalg.matrix_norm(a, order), expected, x.dtype, loose)


FOURIER = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
PLANES = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]


def transformed(dtype, real):
    double = dtype in ("float64", "complex128")
    if real:
        return "float64" if double else "float32"
    return "complex128" if double else "complex64"


@pytest.mark.parametrize("name", FOURIER)
@fixed
@given(data=st.data())
def test_fourier(name, data):
    complexes = [] if name in ("rfft", "ihfft") else ["complex64", "complex128"]
    x = data.draw(drawn(WIDE + complexes, shapes(1, 3, 1), "plain"))
    dim = data.draw(st.integers(-x.array.ndim, x.array.ndim - 1))
    n = data.draw(st.none() | st.integers(1, 9))
    if name in ("irfft", "hfft") and n is None and x.array.shape[dim] == 1:
        n = 3
    norm = data.draw(st.sampled_from([None, "forward", "backward", "ortho"]))
    expected = getattr(np.fft, name)(x.exact, n, dim, norm)
    got = getattr(hf.fft, name)(x.tensor, n, dim, norm)
    dtype = transformed(x.dtype, name in ("irfft", "hfft"))
    check(got, expected, dtype, 2e-4 if "64" not in x.dtype else 1e-4, 1e-3)


@pytest.mark.parametrize("name", PLANES)
@fixed
@given(data=st.data())
def test_fourier_of_planes(name, data):
    complexes = [] if name.startswith("rfft") else ["complex64", "complex128"]
    shape = shapes(2, 4, 2, long=False)
    x = data.draw(drawn(WIDE + complexes, shape, "plain"))
    norm = data.draw(st.sampled_from([None, "forward", "backward", "ortho"]))
    expected = getattr(np.fft, name)(x.exact, norm=norm)
    got = getattr(hf.fft, name)(x.tensor, norm=norm)
    check(got, expected, transformed(x.dtype, name.startswith("irfft")), 2e-4, 1e-3)


@fixed
@given(data=st.data())
def test_shifts(data):
    x = data.draw(drawn(WIDE + ["complex64"], shapes(1, 3), "plain"))
    dim = data.draw(st.none() | st.integers(0, x.array.ndim - 1))
    check(hf.fft.fftshift(x.tensor, dim), np.fft.fftshift(x.array, dim), x.dtype, 0)
    check(hf.fft.ifftshift(x.tensor, dim), np.fft.ifftshift(x.array, dim), x.dtype, 0)


covers(
    *"""
    matmul mm bmm mv dot tensordot kron outer einsum linalg.vecdot linalg.inv
    linalg.solve linalg.det linalg.slogdet linalg.pinv linalg.matrix_power
    linalg.solve_triangular linalg.cholesky linalg.eigh linalg.eigvalsh linalg.qr
    linalg.lu linalg.svd linalg.svdvals linalg.matrix_norm diag_embed eye
    fft.fftshift fft.ifftshift
    """.split()
)
covers(*(f"fft.{name}" for name in FOURIER + PLANES))
