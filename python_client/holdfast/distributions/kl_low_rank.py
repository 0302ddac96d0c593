# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Divergences from and to multivariate normal distributions of low rank."""

import holdfast
from holdfast import _C
from holdfast.distributions.kl_mixed import register_pairs
from holdfast.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from holdfast.distributions.multivariate_normal import (
    MultivariateNormal,
    log_diagonal_sum,
    squared_length,
)

_ops = _C.ops


def _half_log_det(p):
    """Half of the covariance's log determinant."""
    if isinstance(p, LowRankMultivariateNormal):
        return p.half_log_det
    return log_diagonal_sum(p._tril)


def _squared_lengths(q, columns):
    """v . covariance^-1 v of the columns v of [..., n, k]: [..., k]."""
    if isinstance(q, LowRankMultivariateNormal):
        return q.squared_lengths(columns)
    return squared_length(q._tril.unsqueeze(-3), columns.mT)


def _roots(p):
    """Matrices [..., n, k] whose products with their transposes sum to p's
    covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return p.cov_factor, holdfast.diag_embed(_ops.sqrt(p.cov_diag))
    return (p._tril,)


@register_pairs(
    (LowRankMultivariateNormal, LowRankMultivariateNormal),
    (LowRankMultivariateNormal, MultivariateNormal),
    (MultivariateNormal, LowRankMultivariateNormal),
)
def _low_rank(p, q):
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different "
            f"event shapes cannot be computed. Got {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}."
        )
    # The trace of q's precision times p's covariance.
    trace = sum(_squared_lengths(q, root).sum(-1) for root in _roots(p))
    distance = _squared_lengths(q, (q.loc - p.loc).unsqueeze(-1)).squeeze(-1)
    logs = _half_log_det(q) - _half_log_det(p)
    return logs + 0.5 * (trace + distance - p.event_shape[0])
