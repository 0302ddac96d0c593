# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Factorisations: Cholesky, LU, QR, symmetric eigenvalues, singular values."""


from holdfast import _C
from holdfast._registry import accepts_out, both, function, reject
from holdfast.autograd.function import Function
from holdfast.linalg import complex_factors
from holdfast.return_types import named_result
from holdfast.shapes import broadcast_shapes
from holdfast.views import diagonal as _diagonal

_ops = _C.ops

_eig_result = named_result("linalg_eig", ["eigenvalues", "eigenvectors"])
_eigh_result = named_result("linalg_eigh", ["eigenvalues", "eigenvectors"])
_lu_factor_result = named_result("linalg_lu_factor", ["LU", "pivots"])
_lu_result = named_result("linalg_lu", ["P", "L", "U"])
_qr_result = named_result("qr", ["Q", "R"])
_svd_result = named_result("linalg_svd", ["U", "S", "Vh"])
_symeig_result = named_result("symeig", ["eigenvalues", "eigenvectors"])
_torch_svd_result = named_result("svd", ["U", "S", "V"])


def identity_like(a, n):
    """The n x n identity in a's type."""
    return _ops.eye(n, dtype=a.dtype, device=a.device)


@accepts_out
def cholesky(A, *, upper=False):
    """L with A = L L^H, or U with A = U^H U, of Hermitian positive-definite A."""
    if A.dtype.is_complex:
        return complex_factors.cholesky(A, upper)
    return _ops.linalg_cholesky(A, upper)


@both(names=("cholesky",))
def _cholesky(input, upper=False, *, out=None):
    """linalg.cholesky() by its old name."""
    return cholesky(input, upper=upper, out=out)


@both
@accepts_out
def cholesky_solve(input, input2, upper=False):
    """X of A X = input, given A's Cholesky factor input2."""
    lower = input2.mH if upper else input2
    half = _ops.linalg_solve_triangular(lower, input, False)
    return _ops.linalg_solve_triangular(lower.mH, half, True)


@both
@accepts_out
def cholesky_inverse(input, upper=False):
    """The inverse of A, given its Cholesky factor."""
    return cholesky_solve(identity_like(input, input.size(-1)), input, upper)


@accepts_out
def lu_factor(A, *, pivot=True):
    """(LU, pivots): L and U of P A = L U in one matrix; int32 row exchanges."""
    reject("linalg.lu_factor", pivot=None if pivot else pivot)
    return _lu_factor_result(*_ops.linalg_lu_factor(A))


def _permutation_matrix(pivots, rows, like):
    order = _ops.linalg_lu_permutation(pivots, rows)
    zeros = _ops.full(tuple(order.shape) + (rows,), 0, dtype=like.dtype)
    return _ops.scatter(zeros, -2, _ops.unsqueeze(order, -2), 1)


@function
@accepts_out
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(P, L, U) with A = P L U, of lu_factor()'s result."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = None
    if unpack_pivots:
        P = _permutation_matrix(LU_pivots, m, LU_data)
    if unpack_data:
        L = _ops.tril(LU_data, -1)
        U = _ops.triu(LU_data)
        L = L if k == n else _ops.slice(L, -1, 0, k)
        U = U if k == m else _ops.slice(U, -2, 0, k)
        L = L + _ops.eye(m, k, dtype=LU_data.dtype)
    if P is None or L is None:
        empty = _ops.empty((0,), dtype=LU_data.dtype, device=LU_data.device)
        P, L, U = (empty if x is None else x for x in (P, L, U))
    return _lu_result(P, L, U)


@accepts_out
def lu(A, *, pivot=True):
    """(P, L, U) with A = P L U."""
    reject("linalg.lu", pivot=None if pivot else pivot)
    return lu_unpack(*lu_factor(A))


def _rows_at(B, order):
    """B's rows in the given order; batches broadcast."""
    if order.dim() == 1:
        return _ops.index_select(B, -2, order)
    shape = broadcast_shapes(B.shape[:-2], order.shape[:-1]) + tuple(B.shape[-2:])
    return _ops.gather(
        _ops.expand(B, shape), -2, _ops.expand(_ops.unsqueeze(order, -1), shape)
    )


def _inverse_order(order):
    places = _ops.arange(0, order.size(-1))
    return _ops.scatter(
        _ops.full(tuple(order.shape), 0, dtype=order.dtype),
        -1,
        order,
        _ops.expand(places, tuple(order.shape)),
    )


@accepts_out
def lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    """X of A X = B (X A = B without left; A^H with adjoint), of lu_factor(A)."""
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    order = _ops.linalg_lu_permutation(pivots, LU.size(-1))
    if adjoint:
        half = _ops.linalg_solve_triangular(LU.mH, B, False)
        full = _ops.linalg_solve_triangular(LU.mH, half, True, unitriangular=True)
        return _rows_at(full, _inverse_order(order))
    half = _ops.linalg_solve_triangular(
        LU, _rows_at(B, order), False, unitriangular=True
    )
    return _ops.linalg_solve_triangular(LU, half, True)


@both(names=("lu_solve",))
def _lu_solve(b, LU_data, LU_pivots, *, out=None):
    """linalg.lu_solve() with PyTorch's older order of arguments."""
    return lu_solve(LU_data, LU_pivots, b, out=out)


@accepts_out
def qr(A, mode="reduced"):
    """(Q, R) with A = Q R; mode "complete" has a square Q, "r" an empty one."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )
    factorise = complex_factors.qr if A.dtype.is_complex else _ops.linalg_qr
    Q, R = factorise(A, mode == "complete")
    if mode == "r":
        Q = _ops.empty((0,), dtype=A.dtype, device=A.device)
    return _qr_result(Q, R)


@both(names=("qr",))
def _qr(input, some=True, *, out=None):
    """linalg.qr() by its old name."""
    return qr(input, "reduced" if some else "complete", out=out)


def _is_upper(UPLO):
    if UPLO.upper() not in ("U", "L"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


class _Eig(Function):
    """A V = V diag(w), with W = V^H g_V and E_ij = w_j - w_i:
    g_A = V^-H (diag(g_w) + (W - V^H V diag(Re W)) / conj(E) off the diagonal) V^H,
    of which a real A has the real part."""

    @staticmethod
    def forward(ctx, A):
        ctx.set_materialize_grads(False)
        values, vectors = _eig(A, True)
        ctx.real = not A.dtype.is_complex
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx, g_values, g_vectors):
        values, vectors = ctx.saved_tensors
        if g_values is None and g_vectors is None:
            return None
        adjoint = vectors.mH
        inner = None if g_values is None else g_values.diag_embed()
        if g_vectors is not None:
            inside = _turned(values, vectors, adjoint @ g_vectors)
            inner = inside if inner is None else inner + inside
        gradient = _ops.linalg_solve(adjoint, inner @ adjoint)
        return gradient.real if ctx.real else gradient


def _turned(values, vectors, inside):
    """The part of _Eig's gradient that the eigenvectors have; RuntimeError where it
    depends on the phase that each of them may have."""
    diagonal = _diagonal(inside, 0, -2, -1)
    turn = _ops.amax(_ops.abs(diagonal.imag.detach())) if diagonal.numel() else None
    if turn is not None and turn > 1e-2:
        raise RuntimeError(
            "linalg_eig_backward: The eigenvectors in the complex case are specified up"
            " to multiplication by e^{i phi}. The specified loss function depends on "
            "this quantity, so it is ill-defined."
        )
    own = _ops.unsqueeze(diagonal.real, -2)
    gaps = _ops.unsqueeze(values, -2) - _ops.unsqueeze(values, -1)
    one = identity_like(vectors, vectors.size(-1))
    off = (inside - vectors.mH @ (vectors * own)) / _ops.conj(gaps + one)
    return off * (1 - one)


def _eig(A, vectors):
    return (complex_factors.eig if A.dtype.is_complex else _ops.linalg_eig)(A, vectors)


@accepts_out
def eig(A):
    """(eigenvalues, eigenvectors as columns), complex. The gradient wants eigenvalues
    that differ and a loss that no eigenvector's phase changes."""
    if A.requires_grad and _C.is_grad_enabled():
        return _eig_result(*_Eig.apply(A))
    return _eig_result(*_eig(A, True))


@accepts_out
def eigvals(A):
    """Complex eigenvalues."""
    if A.requires_grad and _C.is_grad_enabled():
        return _Eig.apply(A)[0]
    return _eig(A, False)[0]


def eigh_of(A, upper):
    """linalg_eigh of real or complex matrices."""
    return (complex_factors.eigh if A.dtype.is_complex else _ops.linalg_eigh)(A, upper)


@accepts_out
def eigh(A, UPLO="L"):
    """(eigenvalues ascending, eigenvectors as columns) of a Hermitian A."""
    return _eigh_result(*eigh_of(A, _is_upper(UPLO)))


@both
@accepts_out
def symeig(input, eigenvectors=False, upper=True):
    """linalg.eigh() by its old name; without eigenvectors, those are empty."""
    if not eigenvectors:
        empty = _ops.empty((0,), dtype=input.dtype, device=input.device)
        return _symeig_result(eigvalsh(input, "U" if upper else "L"), empty)
    return _symeig_result(*eigh_of(input, upper))


@accepts_out
def eigvalsh(A, UPLO="L"):
    """Eigenvalues of a Hermitian A, ascending."""
    if A.requires_grad or A.dtype.is_complex:
        return eigh_of(A, _is_upper(UPLO))[0]
    return _ops.linalg_eigvalsh(A, _is_upper(UPLO))


def svd_of(A, full):
    """linalg_svd of real or complex matrices."""
    return (complex_factors.svd if A.dtype.is_complex else _ops.linalg_svd)(A, full)


@accepts_out
def svd(A, full_matrices=True, *, driver=None):
    """(U, S, Vh) with A = U diag(S) Vh, S descending."""
    reject("linalg.svd", driver=driver)
    return _svd_result(*svd_of(A, full_matrices))


@both(names=("svd",))
@accepts_out
def _svd(input, some=True, compute_uv=True):
    """(U, S, V) with A = U diag(S) V^H; without compute_uv, U and V are zero."""
    if compute_uv:
        U, S, Vh = svd_of(input, not some)
        return _torch_svd_result(U, S, Vh.mH)
    m, n = input.shape[-2:]
    batch = tuple(input.shape[:-2])
    zeros = [_ops.full(batch + (k, k), 0, dtype=input.dtype) for k in (m, n)]
    return _torch_svd_result(zeros[0], svdvals(input), zeros[1])


@accepts_out
def svdvals(A, *, driver=None):
    """Singular values, descending."""
    reject("linalg.svdvals", driver=driver)
    if A.requires_grad or A.dtype.is_complex:
        return svd_of(A, False)[1]
    return _ops.linalg_svdvals(A)
