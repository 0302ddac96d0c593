# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Singular values of large matrices that have few that count (Halko, Martinsson and
Tropp, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1)."""

import holdfast
from holdfast._registry import function


def _range_of(A, q, niter):
    """[*, m, q]: orthonormal columns that nearly span A's [*, m, n] range."""
    start = holdfast.randn(*A.shape[:-2], A.shape[-1], q, dtype=A.dtype)
    Q = holdfast.linalg.qr(A @ start).Q
    for _ in range(niter):
        Q = holdfast.linalg.qr(A.mT @ Q).Q
        Q = holdfast.linalg.qr(A @ Q).Q
    return Q


@function
def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) of the q largest singular values of A - M, A being [*, m, n]:
    U [*, m, q], S [*, q] descending, V [*, n, q].

    Random: torch.randn starts it; each of `niter` turns makes it more exact.
    """
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    m, n = A.shape[-2:]
    if m < n:
        V, S, U = svd_lowrank(A.mT, q, niter)
        return U, S, V
    Q = _range_of(A, q, niter)
    U, S, Vh = holdfast.linalg.svd(Q.mT @ A, full_matrices=False)
    return Q @ U, S, Vh.mT


@function
def pca_lowrank(A, q=None, center=True, niter=2):
    """svd_lowrank() of A [*, m, n] whose columns had their mean taken away (unless
    not `center`): V's columns are the principal directions of the m samples.

    ValueError unless 0 <= q <= min(m, n); 6 or less if not given.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
