# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Divergences from and to continuous Bernoulli distributions.

KL(p || q) is -entropy(p) minus the mean under p of log q.
"""

import math

from holdfast import _C
from holdfast.distributions.beta import Beta
from holdfast.distributions.continuous_bernoulli import ContinuousBernoulli
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.gumbel import Gumbel
from holdfast.distributions.kl import register_kl
from holdfast.distributions.kl_mixed import (
    infinite_divergence,
    register_pairs,
    to_exponential,
    to_normal,
)
from holdfast.distributions.laplace import Laplace
from holdfast.distributions.normal import Normal
from holdfast.distributions.pareto import Pareto
from holdfast.distributions.uniform import Uniform

_ops = _C.ops
_UNBOUNDED = (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto)

register_pairs(
    *((p, ContinuousBernoulli) for p in _UNBOUNDED),
    (ContinuousBernoulli, Pareto),
)(infinite_divergence)
register_kl(ContinuousBernoulli, Exponential)(to_exponential)
register_kl(ContinuousBernoulli, Normal)(to_normal)


@register_pairs((ContinuousBernoulli, ContinuousBernoulli), (Beta, ContinuousBernoulli))
def _to_continuous_bernoulli(p, q):
    log_q = p.mean * q.logits + _ops.log1p(-q.probs) + q.log_norm()
    return -p.entropy() - log_q


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_to_continuous_bernoulli(p, q):
    outside = (p.low < 0) | (p.high > 1)
    return _ops.where(outside, math.inf, _to_continuous_bernoulli(p, q))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_to_uniform(p, q):
    outside = (q.low > 0) | (q.high < 1)
    return _ops.where(outside, math.inf, -p.entropy() + _ops.log(q.high - q.low))
