# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Products of Householder reflections."""

from holdfast import _C
from holdfast._registry import accepts_out, both

from .factor import identity_like

_ops = _C.ops


@accepts_out
def householder_product(A, tau):
    """The first k columns of H_1 ... H_k, H_i = I - tau_i v_i v_i^H.

    A [..., m, k], m >= k: v_i is 1 at row i, column i of A below it and 0 above.
    tau [..., k]. Result [..., m, k].
    """
    m, k = A.shape[-2:]
    if m < k or tuple(tau.shape) != (*A.shape[:-2], k):
        raise RuntimeError(
            "[linalg.householder_product] A must be [..., m, k] with m >= k, and tau "
            f"[..., k]. Got {list(A.shape)} and {list(tau.shape)}."
        )
    identity = identity_like(A, m)[:, :k]
    # A reflection with tau = 0 is the identity, as one of the vector 0 is.
    idle = _ops.eq(tau, 0)
    vectors = (A.tril(-1) + identity).masked_fill(idle.unsqueeze(-2), 0)
    inverse = 1 / tau.masked_fill(idle, 1)
    # The product is I - V S^-1 V^H, S = strictly upper(V^H V) + diag(1 / tau).
    inner = (vectors.mH @ vectors).triu(1) + inverse.diag_embed()
    top = vectors[..., :k, :].mH
    return identity - vectors @ _ops.linalg_solve_triangular(inner, top, True)


@both
@accepts_out
def orgqr(input, tau):
    """linalg.householder_product() by its old name."""
    return householder_product(input, tau)
