# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Norms of vectors and matrices, condition, rank."""

import math

from holdfast import _C
from holdfast._registry import accepts_out, function
from holdfast.reductions import norm as _elements_norm
from holdfast.shapes import movedim

from .determinant import diagonal_of
from .factor import eigvalsh, identity_like, lu_factor, lu_solve, svdvals
from .solve import above_tolerance, relative_tolerance

_ops = _C.ops


def _cast(x, dtype, name):
    if dtype is not None:
        x = _ops.to(x, dtype)
    if not (x.is_floating_point() or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. "
            f"Got {x.dtype}"
        )
    return x


def _dims(dim):
    return (dim,) if isinstance(dim, int) else tuple(dim)


@accepts_out
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """(sum |x|^ord)^(1/ord) over dim (all elements if None)."""
    x = _cast(x, dtype, "vector_norm")
    if dim is None:
        shape = (1,) * x.dim()
        result = _elements_norm(x.reshape(-1), ord, 0)
        result = result.reshape(shape) if keepdim else result
        return _C.show_as(result, "LinalgVectorNormBackward0", x)
    dims = _dims(dim)
    if not dims:
        dims = tuple(range(x.dim()))
    result = _elements_norm(x, ord, dims, keepdim)
    return _C.show_as(result, "LinalgVectorNormBackward0", x)


def _singular_norm(A, ord):
    values = svdvals(A)
    if ord == "nuc":
        return _ops.sum(values, -1)
    # The gradient is shared by values that are equal.
    return (_ops.amax if ord > 0 else _ops.amin)(values, -1)


@accepts_out
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """Matrix norm over two dims: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    A = _cast(A, dtype, "matrix_norm")
    rank = A.dim()
    if rank < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    dims = _dims(dim)
    if len(dims) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dims)}"
        )
    row, column = (d % rank if -rank <= d < rank else d for d in dims)
    for d in (row, column):
        if not 0 <= d < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, "
                f"{rank - 1}], but got {d})"
            )
    if row == column:
        raise RuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({row}, {column})"
        )
    if ord == "fro":
        result = _elements_norm(A, 2, (row, column), keepdim)
        return _C.show_as(result, "LinalgVectorNormBackward0", A)
    if isinstance(ord, str) and ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in (1, 2, math.inf) and 0 in (A.size(row), A.size(column)):
        return _ops.sum(_ops.abs(A), (row, column), keepdim)
    if ord in ("nuc", 2, -2):
        result = _singular_norm(movedim(A, (row, column), (-2, -1)), ord)
        if keepdim:
            for d in sorted((row, column)):
                result = _ops.unsqueeze(result, d)
        return result
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, other = (row, column) if abs(ord) == 1 else (column, row)
    sums = _ops.sum(_ops.abs(A), summed, True)
    extreme = _ops.amax if ord > 0 else _ops.amin
    return (
        extreme(sums, (row, column), True)
        if keepdim
        else extreme(_ops.squeeze(sums, summed), other - (summed < other))
    )


def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """vector_norm() or matrix_norm(), by ord and the number of dims."""
    if dim is None and ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D "
            f"or 2D. Got {A.dim()}D."
        )
    two = A.dim() == 2 if dim is None else len(_dims(dim)) == 2
    if ord is not None and two:
        dims = (-2, -1) if dim is None else dim
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
    order = 2 if ord is None else ord
    return vector_norm(A, order, dim, keepdim, dtype=dtype, out=out)


@accepts_out
def cond(A, p=None):
    """Condition number in the norm p (2 if None); inf for a singular A."""
    if p in (None, 2, -2):
        values = svdvals(A)
        high, low = values[..., 0], values[..., -1]
        return low / high if p == -2 else high / low
    if A.dim() < 2 or A.size(-1) != A.size(-2):
        raise RuntimeError(
            f"linalg.cond(ord={p}): A must be batches of square matrices"
        )
    LU, pivots = lu_factor(A)
    inverse = lu_solve(LU, pivots, identity_like(A, A.size(-1)))
    singular = _ops.any(_ops.eq(diagonal_of(LU.detach()), 0), -1)
    product = matrix_norm(A, p) * matrix_norm(inverse, p)
    return _ops.where(singular, math.inf, product)


@accepts_out
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """Number of singular values above max(atol, rtol * the largest)."""
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = relative_tolerance(A, atol, rtol)
    A = A.detach()
    values = _ops.abs(eigvalsh(A)) if hermitian else svdvals(A)
    return _ops.sum(above_tolerance(values, atol, rtol), -1)


@function(names=("matrix_rank",))
def _matrix_rank(input, tol=None, symmetric=False):
    """linalg.matrix_rank() by its old name."""
    return matrix_rank(input, tol, symmetric)
