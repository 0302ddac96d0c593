# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Divergences from and to Pareto distributions.

KL(p || q) is -entropy(p) minus the mean under p of log q.
"""

import math

from holdfast import _C
from holdfast.distributions.beta import Beta
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.gumbel import Gumbel
from holdfast.distributions.kl import register_kl
from holdfast.distributions.kl_mixed import (
    infinite_divergence,
    mean_log_between,
    register_pairs,
    to_exponential,
    to_gamma,
    to_normal,
)
from holdfast.distributions.laplace import Laplace
from holdfast.distributions.normal import Normal
from holdfast.distributions.pareto import Pareto
from holdfast.distributions.uniform import Uniform

_ops = _C.ops

register_pairs(
    *((p, Pareto) for p in (Beta, Exponential, Gamma, Gumbel, Laplace, Normal)),
    *((Pareto, q) for q in (Beta, Uniform)),
)(infinite_divergence)
register_kl(Pareto, Exponential)(to_exponential)
register_kl(Pareto, Normal)(to_normal)


@register_kl(Pareto, Gamma)
def _pareto_to_gamma(p, q):
    return to_gamma(p, q, _ops.log(p.scale) + 1 / p.alpha)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    finite = q.alpha * _ops.log(p.scale / q.scale) - _ops.log(ratio) + ratio - 1
    return _ops.where(p.scale < q.scale, math.inf, finite)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p, q):
    mean_log = mean_log_between(p.low, p.high)
    log_q = _ops.log(q.alpha) + q.alpha * _ops.log(q.scale) - (q.alpha + 1) * mean_log
    return _ops.where(p.low < q.scale, math.inf, -p.entropy() - log_q)
