# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The standard's extension of linear algebra."""

import math
from typing import NamedTuple

import holdfast
from holdfast import Tensor
from holdfast.array_api.dtypes import promoted
from holdfast.array_api.reductions import merged, with_axes, wrapped_axes
from holdfast.array_api.statistical import sum as _sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """What eigh() returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """What eig() returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr() returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet() returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd() returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1, x2, /):
    """Products of matrices, the last two axes; of vectors where an operand has one."""
    return holdfast.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """A view with the last two axes swapped."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose() needs a matrix. Got {x.ndim} dimensions.")
    return holdfast.transpose(x, -2, -1)


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over axes of both: so many (the last and the first ones), or
    two sequences of them."""
    return holdfast.tensordot(*promoted(x1, x2), axes)


def vecdot(x1, x2, /, *, axis=-1):
    """Dot products of vectors along axis; x1 is conjugated."""
    x1, x2 = promoted(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot(): axis must count from the last one. Got {axis}.")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot(): the vectors differ in size: {x1.shape[axis]} and "
            f"{x2.shape[axis]}."
        )
    x1, x2 = (holdfast.movedim(x, axis, -1) for x in (x1, x2))
    product = holdfast.matmul(
        holdfast.conj(x1).unsqueeze(-2).contiguous(), x2.unsqueeze(-1).contiguous()
    )
    return product.squeeze(-1).squeeze(-1)


def outer(x1, x2, /):
    """Products of each element of a vector with each of another."""
    return holdfast.outer(*promoted(x1, x2))


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors of three along axis, which counts from the last."""
    x1, x2 = holdfast.broadcast_tensors(*promoted(x1, x2))
    if x1.shape[axis] != 3:
        raise ValueError(f"cross(): vectors have 3 elements. Got {x1.shape[axis]}.")
    a, b = holdfast.unbind(x1, axis), holdfast.unbind(x2, axis)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return holdfast.stack(parts, axis)


def diagonal(x, /, *, offset=0):
    """A view of the matrices' diagonals."""
    return holdfast.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """Sums of the matrices' diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x, /, *, upper=False):
    """The triangular factors of positive definite matrices."""
    return holdfast.linalg.cholesky(x, upper=upper)


def det(x, /):
    """Determinants."""
    return holdfast.linalg.det(x)


def slogdet(x, /):
    """(sign, logarithm of the size) of determinants."""
    return SlogdetResult(*holdfast.linalg.slogdet(x))


def eigh(x, /):
    """(eigenvalues, eigenvectors) of symmetric or Hermitian matrices, ascending."""
    return EighResult(*holdfast.linalg.eigh(x))


def eigvalsh(x, /):
    """Eigenvalues of symmetric or Hermitian matrices, ascending."""
    return holdfast.linalg.eigvalsh(x)


def eig(x, /):
    """(eigenvalues, eigenvectors), complex."""
    return EigResult(*holdfast.linalg.eig(x))


def eigvals(x, /):
    """Eigenvalues, complex."""
    return holdfast.linalg.eigvals(x)


def inv(x, /):
    """Inverse matrices."""
    return holdfast.linalg.inv(x)


def matrix_power(x, n, /):
    """Matrices multiplied by themselves n times; inverted if n is negative."""
    return holdfast.linalg.matrix_power(x, n)


def _tolerance(x, rtol):
    if rtol is not None:
        return rtol
    return max(x.shape[-2:]) * holdfast.finfo(x.dtype).eps


def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above rtol times the largest."""
    values = svdvals(x)
    if values.shape[-1] == 0:
        shape = values.shape[:-1]
        return holdfast.zeros(shape, dtype=holdfast.int64, device=x.device)
    rtol = _tolerance(x, rtol)
    if isinstance(rtol, Tensor):
        rtol = rtol.unsqueeze(-1)
    largest = holdfast.amax(values, -1, keepdim=True)
    return holdfast.sum(values > largest * rtol, -1)


def pinv(x, /, *, rtol=None):
    """Pseudo-inverses; singular values up to rtol times the largest count as 0."""
    return holdfast.linalg.pinv(x, rtol=_tolerance(x, rtol))


def qr(x, /, *, mode="reduced"):
    """(Q, R): columns that are orthonormal, and a triangle."""
    return QRResult(*holdfast.linalg.qr(x, mode))


def solve(x1, x2, /):
    """X with x1 @ X = x2: a vector where x2 has one axis, else matrices."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return holdfast.linalg.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = holdfast.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x2 = holdfast.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    return holdfast.linalg.solve(x1, x2)


def svd(x, /, *, full_matrices=True):
    """(U, S, Vh): singular vectors and values, descending."""
    return SVDResult(*holdfast.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x, /):
    """Singular values, descending."""
    return holdfast.linalg.svdvals(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of matrices; None is the Frobenius norm."""
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        reduce = {2: holdfast.amax, -2: holdfast.amin, "nuc": holdfast.sum}[ord]
        result = reduce(values, -1)
        return with_axes(result, (x.ndim - 2, x.ndim - 1)) if keepdims else result
    size = holdfast.abs(x)
    ord = "fro" if ord is None else ord
    return holdfast.linalg.matrix_norm(size, ord, (-2, -1), keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms of vectors along axes, all of them by default."""
    size = holdfast.abs(x)
    axes = wrapped_axes(axis, x.ndim)
    if not axes:
        return size if ord != 0 else (size != 0).to(size.dtype)
    if size.numel() == 0 and not math.isinf(ord):
        ord = 2
    result = holdfast.linalg.vector_norm(merged(size, axes), ord, -1)
    return with_axes(result, axes) if keepdims else result
