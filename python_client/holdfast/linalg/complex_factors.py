# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Factorisations of complex matrices, for which the daemon has no op.

Unitary reflections bring a matrix into a form whose entries can be made real; the
daemon factorises that, and the reflections are undone. A step per column, each of a few
ops for the whole batch.
"""

from holdfast import _C
from holdfast.arrange import diag_embed
from holdfast.shapes import stack, unbind

_ops = _C.ops


def _adjoint(x):
    return _ops.conj(_ops.transpose(x, -2, -1))


def _column(x, k):
    return _ops.slice(x, -1, k, k + 1)


def _identity(A, n):
    """The n x n identity for each matrix of the batch."""
    eye = _ops.eye(n, dtype=A.dtype, device=A.device)
    return _ops.clone(eye.expand((*A.shape[:-2], n, n)))


def _complex(x, like):
    return _ops.to(x, like.dtype)


def _phase(x):
    """x / |x|; 1 at 0."""
    size = _ops.abs(x)
    zero = _ops.eq(size, 0)
    return _ops.where(zero, 1.0, x / _complex(_ops.where(zero, 1.0, size), x))


def _size(x):
    """The norm of columns, real, [..., 1, 1]; scaled, so that no square overflows."""
    parts = _ops.abs(x)
    largest = _ops.amax(parts, (-2, -1), True)
    scale = _ops.where(_ops.eq(largest, 0), 1.0, largest)
    return _ops.sqrt(_ops.sum((parts / scale) ** 2, (-2, -1), True)) * scale


def _reflector(x, k):
    """v of unit size, or 0, with zeros before row k: x - 2 v (v^H x) has zeros below
    row k. x: columns [..., m, 1]."""
    rows = _ops.arange(0, x.size(-2), 1, device=x.device).reshape(-1, 1)
    tail = _ops.where(_ops.ge(rows, k), x, 0.0)
    head = _ops.slice(x, -2, k, k + 1)
    at_k = _complex(_ops.eq(rows, k), x)
    v = tail + at_k * (_phase(head) * _complex(_size(tail), x))
    size = _size(v)
    return v / _complex(_ops.where(_ops.eq(size, 0), 1.0, size), x)


def _reflect(v, A):
    """The rows of A reflected."""
    return A - (2 * v) @ (_adjoint(v) @ A)


def _reflect_columns(A, v):
    return A - (A @ (2 * v)) @ _adjoint(v)


def qr(A, complete):
    """(Q, R), as the op linalg_qr."""
    m, n = A.size(-2), A.size(-1)
    k = m if complete else min(m, n)
    Q, R = _identity(A, m), A
    for i in range(min(m, n)):
        v = _reflector(_column(R, i), i)
        R, Q = _reflect(v, R), _reflect_columns(Q, v)
    return _ops.slice(Q, -1, 0, k), _ops.triu(_ops.slice(R, -2, 0, k))


def _diagonal(A, offset=0):
    return A.diagonal(offset, -2, -1)


def _stacked(phases, A):
    """Phases [...] of each row as a factor of columns."""
    return _ops.unsqueeze(_ops.cat([_ops.unsqueeze(p, -1) for p in phases], -1), -2)


def eigh(A, upper):
    """(eigenvalues, eigenvectors), as the op linalg_eigh: by a tridiagonal matrix."""
    n = A.size(-1)
    half = _ops.triu(A, 1) if upper else _ops.tril(A, -1)
    # LAPACK does not look at the imaginary parts of the diagonal either.
    diagonal = _complex(_ops.select(_ops.view_as_real(_diagonal(A)), -1, 0), A)
    T = half + _adjoint(half) + _ops.unsqueeze(diagonal, -1) * _identity(A, n)
    Q = _identity(A, n)
    for i in range(n - 2):
        v = _reflector(_column(T, i), i + 1)
        T = _reflect_columns(_reflect(v, T), v)
        Q = _reflect_columns(Q, v)
    below = _diagonal(T, -1) if n > 1 else None
    phases = [_ops.full(tuple(A.shape[:-2]), 1, dtype=A.dtype, device=A.device)]
    for i in range(n - 1):
        phases.append(phases[-1] * _phase(_ops.select(below, -1, i)))
    real = diag_embed(_ops.select(_ops.view_as_real(_diagonal(T)), -1, 0))
    if n > 1:
        beside = _ops.abs(below)
        real = real + diag_embed(beside, -1) + diag_embed(beside, 1)
    values, Z = _ops.linalg_eigh(real, False)
    if n == 0:
        return values, _complex(Z, A)
    return values, (Q * _stacked(phases, A)) @ _complex(Z, A)


def svd(A, full):
    """(U, S, Vh), as the op linalg_svd: by a bidiagonal matrix."""
    m, n = A.size(-2), A.size(-1)
    if m < n:
        U, S, Vh = svd(_adjoint(A), full)
        return _adjoint(Vh), S, _adjoint(U)
    B, Q, P = A, _identity(A, m), _identity(A, n)
    for i in range(n):
        v = _reflector(_column(B, i), i)
        B, Q = _reflect(v, B), _reflect_columns(Q, v)
        if i < n - 2:
            v = _reflector(_adjoint(_ops.slice(B, -2, i, i + 1)), i + 1)
            B, P = _reflect_columns(B, v), _reflect_columns(P, v)
    diagonal = _diagonal(B)
    above = _diagonal(B, 1) if n > 1 else None
    left = []
    right = [_ops.full(tuple(A.shape[:-2]), 1, dtype=A.dtype, device=A.device)]
    for i in range(n):
        left.append(_phase(_ops.select(diagonal, -1, i)) * right[-1])
        if i < n - 1:
            right.append(_ops.conj(_phase(_ops.select(above, -1, i))) * left[-1])
    real = diag_embed(_ops.abs(diagonal))
    if n > 1:
        real = real + diag_embed(_ops.abs(_ops.slice(above, -1, 0, n - 1)), 1)
    U, S, Vh = _ops.linalg_svd(real, False)
    if n:
        U = (_ops.slice(Q, -1, 0, n) * _stacked(left, A)) @ _complex(U, A)
        Vh = _adjoint((P * _stacked(right, A)) @ _complex(_adjoint(Vh), A))
    else:
        U, Vh = _ops.slice(Q, -1, 0, 0), _complex(Vh, A)
    if full:
        U = _ops.cat([U, _ops.slice(Q, -1, n, m)], -1)
    return U, S, Vh


def cholesky(A, upper):
    """L with A = L L^H, or U with A = U^H U, as the op linalg_cholesky."""
    n = A.size(-1)
    if A.size(-2) != n:
        raise RuntimeError(
            "linalg.cholesky: A must be batches of square matrices, but they are "
            f"{A.size(-2)} by {n} matrices"
        )
    rest = _adjoint(A) if upper else A
    columns = []
    for i in range(n):
        column = _column(rest, i)
        pivot = _ops.slice(column, -2, i, i + 1)
        # The real op, since it is the one that says what is not positive definite.
        root = _ops.linalg_cholesky(
            _ops.select(_ops.view_as_real(pivot), -1, 0).contiguous(), False
        )
        rows = _ops.arange(0, n, 1, device=A.device).reshape(-1, 1)
        root = _complex(root, A)
        column = _ops.where(_ops.gt(rows, i), column / root, 0.0)
        column = column + _complex(_ops.eq(rows, i), A) * root
        columns.append(column)
        rest = rest - column @ _adjoint(column)
    L = _ops.cat(columns, -1) if n else _ops.clone(A)
    return _adjoint(L) if upper else L


def eig(A, vectors=True):
    """(eigenvalues, eigenvectors), as the op linalg_eig.

    Those of the real matrix [[Re A, -Im A], [Im A, Re A]] are A's and their conjugates;
    A is shifted, so that its own are those above the real axis.
    """
    n = A.size(-1)
    # Also where the matrix is no square: linalg_eig says so below.
    x, y = unbind(_ops.view_as_real(A), -1)
    if A.size(-2) != n or n == 0:
        values, U = _ops.linalg_eig(x, vectors)
        return values, U
    largest = _ops.amax(_ops.abs(A), (-2, -1), True)
    shift = 2 * n * _ops.where(_ops.eq(largest, 0), 1.0, largest)
    y = y + shift * _ops.eye(n, dtype=x.dtype, device=x.device)
    top, bottom = _ops.cat([x, -y], -1), _ops.cat([y, x], -1)
    values, U = _ops.linalg_eig(_ops.cat([top, bottom], -2), True)
    height = _ops.select(_ops.view_as_real(values), -1, 1)
    order = _ops.slice(_ops.sort(height, -1, True)[1], -1, 0, n)
    values = _ops.gather(values, -1, order)
    back = _ops.view_as_complex(
        stack([shift * 0, shift], -1).reshape(*shift.shape[:-1], 2)
    )
    values = values - back
    if not vectors:
        return values, None
    places = _ops.unsqueeze(order, -2).expand((*order.shape[:-1], n, n))
    upper = _ops.gather(_ops.slice(U, -2, 0, n), -1, places)
    lower = _ops.gather(_ops.slice(U, -2, n, 2 * n), -1, places)
    # upper + i lower
    a, b = unbind(_ops.view_as_real(upper), -1)
    c, d = unbind(_ops.view_as_real(lower), -1)
    V = _ops.view_as_complex(stack([a - d, b + c], -1))
    size = _ops.sqrt(_ops.sum(_ops.abs(V) ** 2, -2, True))
    return values, V / _complex(size, A)
