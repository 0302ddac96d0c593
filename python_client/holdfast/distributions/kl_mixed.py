# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Divergences between distributions of two families.

KL(p || q) is -entropy(p) minus the mean under p of log q, which takes a mean of x,
x^2, log x or exp(-x) only.
"""

import math

import holdfast
from holdfast import _C
from holdfast.distributions.bernoulli import Bernoulli
from holdfast.distributions.beta import Beta
from holdfast.distributions.binomial import Binomial
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.gumbel import Gumbel
from holdfast.distributions.kl import register_kl
from holdfast.distributions.laplace import Laplace
from holdfast.distributions.normal import Normal
from holdfast.distributions.parameters import EULER
from holdfast.distributions.poisson import Poisson
from holdfast.distributions.uniform import Uniform

_ops = _C.ops


def register_pairs(*pairs):
    """Decorator: register_kl for several pairs."""

    def register(f):
        for p, q in pairs:
            register_kl(p, q)(f)
        return f

    return register


@register_pairs(
    *((Exponential, q) for q in (Beta, Uniform)),
    *((Gamma, q) for q in (Beta, Uniform)),
    *((Gumbel, q) for q in (Beta, Exponential, Gamma, Uniform)),
    *((Laplace, q) for q in (Beta, Exponential, Gamma, Uniform)),
    *((Normal, q) for q in (Beta, Exponential, Gamma, Uniform)),
    *((Poisson, q) for q in (Bernoulli, Binomial)),
)
def infinite_divergence(p, q):
    """p draws what q never does."""
    shape = holdfast.broadcast_shapes(p.batch_shape, q.batch_shape)
    return p.mean.new_full(tuple(shape), math.inf)


def _covered(p, q):
    """Where q's support holds all of Uniform p's, [0, inf) or a limited one."""
    support = q.support
    inside = p.low >= support.lower_bound
    high = getattr(support, "upper_bound", None)
    return inside if high is None else inside & (p.high <= high)


@register_pairs(
    *((p, Normal) for p in (Beta, Exponential, Gamma, Gumbel, Laplace, Uniform))
)
def to_normal(p, q):
    square = p.variance + (p.mean - q.loc) ** 2
    variance = q.scale**2
    return (
        -p.entropy()
        + 0.5 * _ops.log(variance * (2 * math.pi))
        + 0.5 * square / variance
    )


@register_kl(Normal, Laplace)
def _normal_to_laplace(p, q):
    # The mean of |x - loc| is a folded normal number's.
    shift = (p.loc - q.loc) / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * _ops.exp(-0.5 * shift**2)
    far = (p.loc - q.loc) * _ops.erf(math.sqrt(0.5) * shift)
    return -p.entropy() + _ops.log(2 * q.scale) + (near + far) / q.scale


@register_pairs((Beta, Exponential), (Gamma, Exponential))
def to_exponential(p, q):
    return -p.entropy() - _ops.log(q.rate) + q.rate * p.mean


@register_kl(Uniform, Exponential)
def _uniform_to_exponential(p, q):
    return _ops.where(_covered(p, q), to_exponential(p, q), math.inf)


def _mean_log(p):
    """The mean of log x."""
    if isinstance(p, Beta):
        total = p.concentration1 + p.concentration0
        return _ops.digamma(p.concentration1) - _ops.digamma(total)
    if isinstance(p, Exponential):
        return -EULER - _ops.log(p.rate)
    return mean_log_between(p.low, p.high)


def mean_log_between(low, high):
    """The mean of log x over [low, high]; 0 log 0 counts as 0."""
    area = holdfast.xlogy(high, high) - holdfast.xlogy(low, low)
    return area / (high - low) - 1


@register_pairs((Beta, Gamma), (Exponential, Gamma))
def to_gamma(p, q, mean_log=None):
    """mean_log is the mean of log x under p, which _mean_log knows of some."""
    mean_log = _mean_log(p) if mean_log is None else mean_log
    return (
        -p.entropy()
        - q.concentration * _ops.log(q.rate)
        + _ops.lgamma(q.concentration)
        - (q.concentration - 1) * mean_log
        + q.rate * p.mean
    )


@register_kl(Uniform, Gamma)
def _uniform_to_gamma(p, q):
    return _ops.where(_covered(p, q), to_gamma(p, q), math.inf)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p, q):
    log_beta = (
        _ops.lgamma(q.concentration1)
        + _ops.lgamma(q.concentration0)
        - _ops.lgamma(q.concentration1 + q.concentration0)
    )
    finite = (
        -p.entropy()
        + log_beta
        - (q.concentration1 - 1) * mean_log_between(p.low, p.high)
        - (q.concentration0 - 1) * mean_log_between(1 - p.high, 1 - p.low)
    )
    return _ops.where(_covered(p, q), finite, math.inf)


@register_kl(Beta, Uniform)
def _beta_to_uniform(p, q):
    outside = (q.low > 0) | (q.high < 1)
    finite = -p.entropy() + _ops.log(q.high - q.low)
    return _ops.where(outside, math.inf, finite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p, q):
    return -p.entropy() - (p.probs * _ops.log(q.rate) - q.rate)


def _to_gumbel(p, q, mean_exp):
    """mean_exp is the mean of exp((loc - x) / scale)."""
    distance = (p.mean - q.loc) / q.scale
    return -p.entropy() + _ops.log(q.scale) + distance + mean_exp


@register_kl(Exponential, Gumbel)
def _exponential_to_gumbel(p, q):
    product = p.rate * q.scale
    return _to_gumbel(p, q, _ops.exp(q.loc / q.scale) * product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_to_gumbel(p, q):
    shrink = _ops.log1p(1 / (p.rate * q.scale))
    return _to_gumbel(p, q, _ops.exp(q.loc / q.scale - p.concentration * shrink))


@register_kl(Normal, Gumbel)
def _normal_to_gumbel(p, q):
    distance = (p.loc - q.loc) / q.scale
    spread = 0.5 * (p.scale / q.scale) ** 2
    return _to_gumbel(p, q, _ops.exp(spread - distance))


@register_kl(Uniform, Gumbel)
def _uniform_to_gumbel(p, q):
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    area = _ops.exp(-low) - _ops.exp(-high)
    return _to_gumbel(p, q, area / (high - low))
