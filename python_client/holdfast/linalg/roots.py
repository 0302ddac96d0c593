# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The square root of symmetric matrices and the polar decomposition.

Their gradients solve Sylvester's equation X Y + Y X = G, so that they exist where
eigenvalues or singular values repeat, unlike those of eigh() and svd().
"""

from holdfast import _C
from holdfast._registry import accepts_out
from holdfast.autograd.function import Function
from holdfast.return_types import named_result

_ops = _C.ops
_polar_result = named_result("linalg_polar", ["U", "H"])


class _Sylvester(Function):
    """Y with X Y + Y X = G, for symmetric X without negative eigenvalues."""

    @staticmethod
    def forward(ctx, X, G):
        values, vectors = _ops.linalg_eigh(X)
        sums = _ops.unsqueeze(values, -1) + _ops.unsqueeze(values, -2)
        none = _ops.le(sums, 0)  # where X is singular: the least solution
        inner = vectors.mT @ G @ vectors
        inner = _ops.where(none, 0.0, inner / _ops.where(none, 1.0, sums))
        Y = vectors @ inner @ vectors.mT
        ctx.save_for_backward(X, Y)
        return Y

    @staticmethod
    def backward(ctx, gradient):
        X, Y = ctx.saved_tensors
        Z = _Sylvester.apply(X, gradient)
        return -(Z @ Y.mT + Y.mT @ Z), Z


class _Root(Function):
    @staticmethod
    def forward(ctx, A):
        values, vectors = _ops.linalg_eigh(A)
        roots = _ops.unsqueeze(_ops.sqrt(_ops.clamp(values, 0.0)), -2)
        X = (vectors * roots) @ vectors.mT
        ctx.save_for_backward(X)
        return X

    @staticmethod
    def backward(ctx, gradient):
        (X,) = ctx.saved_tensors
        return _Sylvester.apply(X, (gradient + gradient.mT) / 2)


def matrix_sqrth(A):
    """X = X^T with X X = A, of symmetric positive-definite A [..., n, n].

    float32 or float64; only the lower triangle is read. Eigenvalues below 0 count as
    0. RuntimeError for matrices that are not square.
    """
    _check("matrix_sqrth", A)
    if A.size(-1) != A.size(-2):
        raise RuntimeError(
            "linalg.matrix_sqrth: A must be batches of square matrices, but they are "
            f"{A.size(-2)} by {A.size(-1)} matrices"
        )
    return _Root.apply(A)


class _Polar(Function):
    """With S the solution for H of U^T g_U - g_H H:
    g_A = U (g_H + S - S^T) + (I - U U^T) g_U H^-1"""

    @staticmethod
    def forward(ctx, A):
        left, values, right = _ops.linalg_svd(A, False)
        U = left @ right
        H = (right.mT * _ops.unsqueeze(values, -2)) @ right
        H = (H + H.mT) / 2
        ctx.save_for_backward(U, H)
        return U, H

    @staticmethod
    def backward(ctx, g_U, g_H):
        U, H = ctx.saved_tensors
        S = _Sylvester.apply(H, U.mT @ g_U - g_H @ H)
        g_A = U @ (g_H + S - S.mT)
        if U.size(-2) > U.size(-1):
            rest = g_U - U @ (U.mT @ g_U)
            g_A = g_A + _ops.linalg_solve(H, rest.mT).mT
        return g_A


@accepts_out
def polar(A):
    """(U, H) with A = U H: U has orthonormal columns, H is symmetric without negative
    eigenvalues. A [..., m, n], m >= n, float32 or float64 -> [..., m, n], [..., n, n].

    The gradient wants full rank where m > n; RuntimeError for m < n.
    """
    _check("polar", A)
    if A.size(-2) < A.size(-1):
        raise RuntimeError(
            "linalg.polar: input must have at least as many rows as columns, but got "
            f"{A.size(-2)} by {A.size(-1)} matrices"
        )
    return _polar_result(*_Polar.apply(A))


def _check(name, A):
    if A.dim() < 2:
        raise RuntimeError(
            f"linalg.{name}: The input tensor A must have at least 2 dimensions."
        )
