# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""orthogonal(), of torch.nn.utils.parametrizations."""

import numpy as np

import holdfast
from holdfast import linalg

from ..module import Module
from .parametrize import register_parametrization

_MAPS = ("matrix_exp", "cayley", "householder")


def _with_positive_diagonal(matrix):
    """Q of matrix = Q R with a positive diagonal of R."""
    q, r = linalg.qr(matrix)
    return q * r.diagonal(0, -2, -1).sgn().unsqueeze(-2)


def _is_orthogonal(matrix):
    n = matrix.shape[-1]
    rest = matrix.mH @ matrix - holdfast.eye(n, dtype=matrix.dtype)
    return bool(rest.abs().max() < 10 * n * holdfast.finfo(matrix.dtype).eps)


class _Orthogonal(Module):
    """A matrix [..., n, k], or its transpose where it is wide, with orthonormal
    columns, of any matrix of that shape."""

    def __init__(self, weight, orthogonal_map, use_trivialization):
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.shape = weight.shape
        # A trivialization maps -I to the value that was given: `base`.
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        if self.orthogonal_map == "householder":
            lower = X.tril(-1)
            tau = 2 / (1 + (lower * lower).sum(-2))
            Q = linalg.householder_product(lower, tau)
            Q = Q * X.diagonal(0, -2, -1).sign().unsqueeze(-2)
        else:
            Q = self._rotation(X)[..., : X.size(-1)]
        base = getattr(self, "base", None)
        if base is not None:
            Q = base @ Q
        return Q.mT if wide else Q

    def _rotation(self, X):
        n, k = X.shape[-2:]
        lower = X.tril()
        if n != k:
            zeros = X.new_zeros((*X.shape[:-1], n - k))
            lower = holdfast.cat([lower, zeros], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            return holdfast.matrix_exp(skew)
        identity = holdfast.eye(n, dtype=X.dtype)
        return linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)

    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        given, Q = Q, Q.mT if Q.size(-2) < Q.size(-1) else Q
        if not hasattr(self, "base"):
            if self.orthogonal_map == "householder":
                A = _reflectors(Q)
                return A.mT if Q is not given else A
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        n, k = Q.shape[-2:]
        if n != k:
            rest = holdfast.randn(*Q.shape[:-1], n - k, dtype=Q.dtype)
            Q = _with_positive_diagonal(holdfast.cat([Q, rest], -1))
        else:
            Q = Q.clone() if _is_orthogonal(Q) else _with_positive_diagonal(Q)
        self.base = Q
        result = holdfast.zeros_like(given)
        result.diagonal(0, -2, -1).fill_(-1)
        return result


def _reflectors(Q):
    """A of Q = householder(A), read once: the vectors below the diagonal, and on
    it the signs of the columns."""
    raw, tau = np.linalg.qr(Q.detach().cpu().numpy(), mode="raw")
    A = np.array(np.swapaxes(raw, -2, -1))
    index = np.arange(A.shape[-1])
    signs = np.sign(A[..., index, index])
    A[..., index, index] = np.where(tau == 0, -signs, signs)
    return holdfast.tensor(A, dtype=Q.dtype)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Makes a parameter [..., n, k] orthogonal; returns the module.

    orthogonal_map: "matrix_exp" (of square matrices by default), "cayley" (both of
    a skew-symmetric matrix) or "householder" (a product of reflections).
    use_trivialization keeps the value of now as a factor (Lezcano Casado 2019).
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, holdfast.Tensor):
        raise ValueError(
            f"Module '{module}' has no parameter or buffer with name '{name}'"
        )
    if weight.ndim < 2:
        raise ValueError(
            "Expected a matrix or batch of matrices. "
            f"Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
