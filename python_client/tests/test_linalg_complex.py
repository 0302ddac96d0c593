# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Factorisations of complex matrices, against NumPy's and by what defines them."""

import numpy
import pytest

TOLERANCE = {"complex128": 1e-11, "complex64": 3e-4}
SHAPES = [(0, 0), (1, 1), (3, 3), (4, 2), (2, 4), (3, 0), (2, 3, 3), (0, 2, 2)]
CASES = [
    *((kind, "complex128") for kind in ("full", "zero", "rank one", "diagonal")),
    ("full", "complex64"),
]


def matrix(shape, kind, dtype="complex128"):
    rng = numpy.random.default_rng(0)
    A = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if kind == "zero":
        A = A * 0
    elif kind == "rank one" and A.size:
        A = A[..., :1] @ A[..., :1, :]
    elif kind == "diagonal":
        A = A * numpy.eye(*shape[-2:])
    return A.astype(dtype)


def adjoint(A):
    return numpy.conj(numpy.swapaxes(A, -1, -2))


def assert_same(got, want, dtype):
    tolerance = TOLERANCE[dtype]
    numpy.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def assert_orthonormal(Q, dtype):
    identity = numpy.broadcast_to(numpy.eye(Q.shape[-1]), (adjoint(Q) @ Q).shape)
    assert_same(adjoint(Q) @ Q, identity, dtype)


@pytest.mark.parametrize("kind, dtype", CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_shape(torch, shape, kind, dtype):
    A = matrix(shape, kind, dtype)
    x, k = torch.tensor(A), min(shape[-2:])
    for full in (True, False):
        got, want = torch.linalg.svd(x, full), numpy.linalg.svd(A, full)
        U, S, Vh = (t.numpy() for t in got)
        assert [t.shape for t in (U, S, Vh)] == [t.shape for t in want]
        assert_same(S, want[1], dtype)
        assert_same((U[..., :k] * S[..., None, :]) @ Vh[..., :k, :], A, dtype)
        assert_orthonormal(U, dtype)
        assert_orthonormal(adjoint(Vh), dtype)
    assert_same(torch.linalg.svdvals(x).numpy(), want[1], dtype)
    for mode in ("reduced", "complete"):
        Q, R = (t.numpy() for t in torch.linalg.qr(x, mode))
        assert R.shape == numpy.linalg.qr(A, mode)[1].shape
        assert_same(Q @ R, A, dtype)
        assert_same(R, numpy.triu(R), dtype)
        assert_orthonormal(Q, dtype)
    P = torch.linalg.pinv(x, rtol=1e-5).numpy()
    assert P.shape == adjoint(A).shape
    assert_same(A @ P @ A, A, dtype)
    assert_same(P @ A, adjoint(P @ A), dtype)
    rank = (want[1] > 1e-3).sum(-1)
    assert torch.linalg.matrix_rank(x).tolist() == rank.tolist()


@pytest.mark.parametrize("kind, dtype", CASES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]], ids=str)
def test_of_square_ones(torch, shape, kind, dtype):
    A = matrix(shape, kind, dtype)
    H = A + adjoint(A)
    for half, UPLO in ((numpy.triu(H), "U"), (numpy.tril(H), "L")):
        values, V = (t.numpy() for t in torch.linalg.eigh(torch.tensor(half), UPLO))
        assert_same(values, numpy.linalg.eigvalsh(H), dtype)
        assert_same(H @ V, V * values[..., None, :], dtype)
        assert_orthonormal(V, dtype)
    positive = A @ adjoint(A) + numpy.eye(shape[-1], dtype=dtype)
    want = numpy.linalg.cholesky(positive)
    x = torch.tensor(positive)
    assert_same(torch.linalg.cholesky(x).numpy(), want, dtype)
    assert_same(torch.linalg.cholesky(x, upper=True).numpy(), adjoint(want), dtype)
    for M in (A, H):
        values, V = (t.numpy() for t in torch.linalg.eig(torch.tensor(M)))
        assert_same(M @ V, V * values[..., None, :], dtype)
        assert_same(numpy.linalg.norm(V, axis=-2), numpy.ones(values.shape), dtype)
        assert_same(values.sum(-1), numpy.trace(M, axis1=-2, axis2=-1), dtype)
        got = torch.linalg.eigvals(torch.tensor(M)).numpy()
        assert_same(numpy.sort(got, -1), numpy.sort(values, -1), dtype)


def test_hermitian_eigenvectors_are_independent(torch):
    """eig() of a matrix whose eigenvalues are all real, with a double one."""
    Q = numpy.linalg.qr(matrix((4, 4), "full"))[0]
    H = (Q * [1, 2, 2, 5]) @ adjoint(Q)
    values, V = (t.numpy() for t in torch.linalg.eig(torch.tensor(H)))
    assert_same(numpy.sort(values.real), [1, 2, 2, 5], "complex128")
    assert numpy.linalg.matrix_rank(V) == 4


def test_not_positive_definite(torch):
    x = torch.tensor([[1, 2j], [-2j, 1]])
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        torch.linalg.cholesky(x).tolist()


def test_gradients(torch):
    x = torch.tensor(matrix((3, 3), "full"), requires_grad=True)
    for f in (
        torch.linalg.svdvals,
        torch.linalg.pinv,
        lambda A: torch.linalg.eigvalsh(A + A.mH),
        lambda A: torch.linalg.cholesky(A @ A.mH + torch.eye(3)),
        lambda A: torch.linalg.qr(A)[1].abs(),
    ):
        assert torch.autograd.gradcheck(f, (x,))
