# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Products of Householder reflections."""

from holdfast import _C
from holdfast._registry import accepts_out, both

from holdfast.return_types import named_result

from .factor import identity_like

_ops = _C.ops

_geqrf_result = named_result("geqrf", ["a", "tau"])


@accepts_out
def householder_product(A, tau):
    """The first k columns of H_1 ... H_k, H_i = I - tau_i v_i v_i^H.

    A [..., m, n], m >= n: v_i is 1 at row i, column i of A below it and 0 above.
    tau [..., k], k <= n. Result [..., m, n].
    """
    m, n = A.shape[-2:]
    k = tau.size(-1) if tau.dim() else -1
    if not m >= n >= k or tuple(tau.shape) != (*A.shape[:-2], k):
        raise RuntimeError(
            "[linalg.householder_product] A must be [..., m, n] with m >= n, and tau "
            f"[..., k] with n >= k. Got {list(A.shape)} and {list(tau.shape)}."
        )
    vectors, inner = _reflections(A[..., :k], tau)
    top = _ops.unsqueeze(tau, -1) * vectors[..., :n, :].mH
    identity = identity_like(A, m)[:, :n]
    return identity - vectors @ _solve_unit(inner, top, True)


def _reflections(A, tau):
    """(V, S) with H_1 ... H_k = I - V S^-1 diag(tau) V^H, S unit upper triangular:
    without 1 / tau, which is not there for a reflection that is the identity."""
    vectors = A.tril(-1) + identity_like(A, A.size(-2))[:, : A.size(-1)]
    inner = _ops.unsqueeze(tau, -1) * (vectors.mH @ vectors).triu(1)
    return vectors, inner + identity_like(A, A.size(-1))


def _solve_unit(inner, right, upper):
    return _ops.linalg_solve_triangular(inner, right, upper, unitriangular=True)


@both
@accepts_out
def ormqr(input, tau, other, left=True, transpose=False):
    """Q @ other, or other @ Q without left, with Q = H_1 ... H_k of m rows; Q^H in
    its place with transpose. input [..., m, k] and tau [..., k] as geqrf() gives."""
    side = other.size(-2 if left else -1)
    k = tau.size(-1)
    if input.size(-2) != side or not k <= min(input.shape[-2:]):
        raise RuntimeError(
            "[ormqr] input must be [..., m, k], tau [..., k] and other of m "
            f"{'rows' if left else 'columns'}. Got {list(input.shape)}, "
            f"{list(tau.shape)} and {list(other.shape)}."
        )
    vectors, inner = _reflections(input[..., :k], tau)
    if not left:  # (Q^H C^H)^H
        return ormqr(input, tau, other.mH, True, not transpose).mH
    half, scale = vectors.mH @ other, _ops.unsqueeze(tau, -1)
    if transpose:
        part = scale.conj() * _solve_unit(inner.mH, half, False)
    else:
        part = _solve_unit(inner, scale * half, True)
    return other - vectors @ part


@both
@accepts_out
def geqrf(input):
    """(a, tau): R in a's upper triangle, the vectors of the reflections below it,
    with Q = householder_product(a, tau). As LAPACK's, without gradients."""
    if input.dtype not in (_C.float32, _C.float64):
        kind = "ComplexFloat" if input.is_complex() else str(input.dtype)
        raise RuntimeError(f"\"geqrf\" not implemented for '{kind}'")
    if input.dim() < 2:
        raise RuntimeError(
            "torch.geqrf: input must have at least 2 dimensions. Got "
            f"{list(input.shape)}."
        )
    a = input.detach().clone()
    m, n = a.shape[-2:]
    k = min(m, n)
    tau = _ops.full((*a.shape[:-2], k), 0, dtype=a.dtype, device=a.device)
    for i in range(k if a.numel() else 0):
        column = a[..., i:, i]
        alpha, tail = column[..., :1], column[..., 1:]
        rest = tail.norm(dim=-1, keepdim=True)
        size = _ops.sqrt(alpha * alpha + rest * rest)
        beta = _ops.where(_ops.lt(alpha, 0), size, -size)
        idle = _ops.eq(rest, 0)  # nothing to reflect
        factor = _ops.where(idle, 0.0, (beta - alpha) / _ops.where(idle, 1.0, beta))
        vector = _ops.where(idle, 0.0, tail / _ops.where(idle, 1.0, alpha - beta))
        whole = _ops.cat([_ops.full(tuple(alpha.shape), 1, dtype=a.dtype), vector], -1)
        later = a[..., i:, i + 1 :]
        onto = _ops.unsqueeze(whole * factor, -2) @ later
        a[..., i:, i + 1 :] = later - _ops.unsqueeze(whole, -1) @ onto
        a[..., i:, i] = _ops.cat([_ops.where(idle, alpha, beta), vector], -1)
        tau[..., i] = factor[..., 0]
    return _geqrf_result(a, tau)


@both
@accepts_out
def orgqr(input, tau):
    """linalg.householder_product() by its old name."""
    return householder_product(input, tau)
