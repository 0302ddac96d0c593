# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Linear systems, inverses, least squares."""

import math

from holdfast import _C
from holdfast._registry import accepts_out, both
from holdfast.constants import in_graph_of
from holdfast.errors import OpError
from holdfast.return_types import named_result

from .factor import eigh_of, identity_like, svd_of

_ops = _C.ops

_EPSILON = {
    _C.float32: 2.0**-23,
    _C.float64: 2.0**-52,
    _C.complex64: 2.0**-23,
    _C.complex128: 2.0**-52,
}

_lstsq_result = named_result(
    "linalg_lstsq", ["solution", "residuals", "rank", "singular_values"]
)
_triangular_result = named_result(
    "triangular_solve", ["solution", "cloned_coefficient"]
)


def relative_tolerance(A, atol, rtol):
    """(atol, rtol) with PyTorch's defaults: numbers, or tensors of one per matrix."""
    given = isinstance(atol, _C.Tensor) or bool(atol)
    atol = 0.0 if atol is None else atol
    if rtol is None:
        default = _EPSILON.get(A.dtype, 0.0) * max(A.shape[-2:], default=0)
        if isinstance(atol, _C.Tensor):
            rtol = _ops.where(_ops.gt(atol, 0.0), 0.0, default)
        else:
            rtol = 0.0 if given else default
    return tuple(t if isinstance(t, _C.Tensor) else float(t) for t in (atol, rtol))


def above_tolerance(values, atol, rtol):
    """Which of the values [..., k], none negative, exceed max(atol, rtol * largest)."""
    if values.size(-1) == 0:
        return _ops.gt(values, 0.0)
    atol, rtol = (
        _ops.unsqueeze(t, -1) if isinstance(t, _C.Tensor) else t for t in (atol, rtol)
    )
    least = _ops.maximum(_ops.amax(values, -1, True) * rtol, atol)
    return _ops.gt(values, least)


def is_vector(A, B):
    """Whether B holds vectors, one for each matrix, instead of matrices."""
    return B.dim() == 1 or (
        A.dim() - 1 == B.dim() and tuple(B.shape) == tuple(A.shape[:-1])
    )


@accepts_out
def solve(A, B, *, left=True):
    """X of A X = B (X A = B without left); B may be one vector per matrix."""
    if is_vector(A, B):
        A = A if left else A.mT
        return _ops.squeeze(_ops.linalg_solve(A, _ops.unsqueeze(B, -1)), -1)
    if left:
        return _ops.linalg_solve(A, B)
    return _ops.linalg_solve(A.mT, B.mT).mT


@accepts_out
def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """X of A X = B (X A = B without left); reads one triangle of A."""
    return _ops.linalg_solve_triangular(A, B, upper, left, unitriangular)


@both
@accepts_out
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """(X of A X = b, A): solve_triangular() by its old name."""
    matrix = A.mT if transpose else A
    solution = _ops.linalg_solve_triangular(
        matrix, b, upper != transpose, True, unitriangular
    )
    return _triangular_result(solution, _ops.clone(A))


@both(names=("inverse",))
def _inverse(input, *, out=None):
    """Inverse of square matrices."""
    return inv(input, out=out)


@accepts_out
def inv(A):
    """Inverse of square matrices."""
    if A.dim() < 2:
        raise RuntimeError(
            "linalg.inv: The input tensor A must have at least 2 dimensions."
        )
    if A.size(-2) != A.size(-1):
        raise OpError(
            "[linalg.inv] A must be batches of square matrices, but they are "
            f"{A.size(-2)} by {A.size(-1)} matrices. Got A of shape {list(A.shape)}."
        )
    result = _ops.linalg_solve(A, identity_like(A, A.size(-2)))
    _C.reword(result, _OF_INV)
    return _C.show_as(result, "LinalgInvExBackward0", A)


# An inverse solves a system that the user has not written.
_OF_INV = (
    ("linalg.solve", "linalg.inv"),
    ("The solver failed", "The inversion could not be completed"),
)


@accepts_out
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """Pseudoinverse; singular values up to max(atol, rtol * largest) are zero."""
    atol, rtol = relative_tolerance(A, atol, rcond if rtol is None else rtol)
    if hermitian and A.numel():
        values, vectors = eigh_of(A, False)
        left, right = vectors, vectors.mH
    elif (
        isinstance(atol, _C.Tensor) or isinstance(rtol, _C.Tensor) or A.dtype.is_complex
    ):
        U, values, Vh = svd_of(A, False)
        left, right = Vh.mH, U.mH
    else:
        return _ops.linalg_pinv(A, atol, rtol)
    kept = above_tolerance(_ops.abs(values.detach()), atol, rtol)
    inverse = _ops.where(kept, 1.0 / _ops.where(kept, values, 1.0), 0.0)
    inverse = _ops.to(inverse, A.dtype)
    return (left * _ops.unsqueeze(inverse, -2)) @ right


@both
def pinverse(input, rcond=1e-15):
    """linalg.pinv() by its old name."""
    return pinv(input, rcond)


def _least_norm(A, B):
    """The solution of a system of full rank, by QR."""
    m, n = A.shape[-2:]
    if m >= n:
        Q, R = _ops.linalg_qr(A)
        return _ops.linalg_solve_triangular(R, Q.mT @ B, True)
    Q, R = _ops.linalg_qr(A.mT)
    return Q @ _ops.linalg_solve_triangular(R.mT, B, False)


def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular_values) of least squares A X = B.

    Driver "gels" wants full rank and is fastest; the others (default "gelsy")
    find the solution of least norm. What a driver does not compute is empty.
    """
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, "
            f"gelsd, gelss) but got {driver!r}"
        )
    vector = is_vector(A, B)
    right = _ops.unsqueeze(B, -1) if vector else B
    if A.dim() < 2 or right.dim() < 2 or A.size(-2) != right.size(-2):
        raise RuntimeError(
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2). Got "
            f"{list(A.shape)} and {list(B.shape)}."
        )
    empty = _ops.empty((0,), dtype=A.dtype, device=A.device)
    rank = _ops.empty((0,), dtype=_C.int64, device=A.device)
    singular_values = empty
    if driver == "gels":
        solution = _least_norm(A, right)
    else:
        atol, rtol = relative_tolerance(A, None, rcond)
        solution = _ops.linalg_pinv(A, atol, rtol) @ right
        values = _ops.linalg_svdvals(A.detach())
        rank = _ops.sum(_ops.gt(values, rtol * values[..., :1]), -1)
        if driver != "gelsy":
            singular_values = values
    if A.size(-2) > A.size(-1) and driver != "gelsy":
        error = A @ solution - right
        residuals = _ops.sum(error * error, -2)
        residuals = _ops.squeeze(residuals, -1) if vector else residuals
    else:
        residuals = in_graph_of(empty, A, B)
    solution = _ops.squeeze(solution, -1) if vector else solution
    return _lstsq_result(solution, residuals, rank, singular_values)


@accepts_out
def tensorinv(A, ind=2):
    """The inverse of tensordot(A, ., ind)."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(columns)} != "
            f"{math.prod(rows)}"
        )
    matrix = A.reshape(math.prod(rows), math.prod(columns))
    return inv(matrix).reshape(columns + rows)


@accepts_out
def tensorsolve(A, B, dims=None):
    """X of tensordot(A, X, X.dim()) = B; dims move to the end of A first."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    shape = tuple(A.shape[B.dim() :])
    size = math.prod(shape)
    if size != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:])"
            f" == prod(self.shape[:other.ndim]), but got {size} != {B.numel()}"
        )
    return solve(A.reshape(size, size), B.reshape(-1)).reshape(shape)
