# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Determinants, by way of LU."""


from holdfast import _C
from holdfast._registry import accepts_out, both
from holdfast.constants import in_graph_of
from holdfast.return_types import named_result

_ops = _C.ops

_slogdet_result = named_result("linalg_slogdet", ["sign", "logabsdet"])


def diagonal_of(a, columns=None):
    """The diagonal of square matrices, or of the first `columns` columns."""
    n = a.size(-1)
    k = min(a.size(-2), n)
    if k == 0:
        return a.reshape(tuple(a.shape[:-2]) + (0,))
    flat = a.reshape(tuple(a.shape[:-2]) + (a.size(-2) * n,))
    return _ops.slice(flat, -1, 0, (k - 1) * (n + 1) + 1, n + 1)


def _product(x):
    """The product over the last dimension; of complex numbers half by half."""
    if not x.is_complex():
        return _ops.prod(x, -1)
    n = x.size(-1)
    if n == 0:
        return _ops.full(tuple(x.shape[:-1]), 1, dtype=x.dtype, device=x.device)
    while n > 1:
        half = n // 2
        pairs = _ops.slice(x, -1, 0, half) * _ops.slice(x, -1, half, 2 * half)
        x = pairs if n % 2 == 0 else _ops.cat([pairs, _ops.slice(x, -1, n - 1)], -1)
        n = x.size(-1)
    return _ops.select(x, -1, 0)


def _direction(x):
    """x / |x|, the sign of a real number; 0 at 0."""
    if not x.is_complex():
        return _ops.sign(x)
    size = _ops.abs(x)
    return x / _ops.where(_ops.eq(size, 0), 1.0, size)


def _factors(A):
    """U's diagonal and the sign of the row exchanges."""
    if A.dim() >= 2 and A.size(-1) != A.size(-2):
        raise RuntimeError(
            "linalg.det: A must be batches of square matrices, but they are "
            f"{A.size(-2)} by {A.size(-1)} matrices"
        )
    LU, pivots = _ops.linalg_lu_factor(A)
    moved = _ops.ne(pivots, _ops.arange(1, pivots.size(-1) + 1))
    sign = _ops.prod(_ops.where(moved, -1.0, 1.0), -1)
    if sign.dtype != A.dtype:
        sign = _ops.to(sign, A.dtype)
    return diagonal_of(LU), sign


@accepts_out
def det(A):
    """Determinant."""
    diagonal, sign = _factors(A)
    return _C.show_as(_product(diagonal) * sign, "LinalgDetBackward0", A)


@accepts_out
def slogdet(A):
    """(sign, log of the absolute value) of the determinant."""
    diagonal, sign = _factors(A)
    direction = _product(_direction(diagonal.detach())) * sign
    return _slogdet_result(
        in_graph_of(direction, A),
        _C.show_as(
            _ops.sum(_ops.log(_ops.abs(diagonal)), -1), "LinalgSlogdetBackward0", A
        ),
    )


@both(names=("det",))
def _det(input):
    """linalg.det(); here PyTorch names the argument otherwise."""
    return det(input)


@both(names=("slogdet",))
def _slogdet(input):
    """linalg.slogdet(); here PyTorch names the argument otherwise."""
    return slogdet(input)


@both
def logdet(input):
    """log(det(input)): NaN when the determinant is negative."""
    sign, logarithm = slogdet(input)
    return _ops.where(_ops.lt(sign, 0), float("nan"), logarithm)
