# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Divergences between distributions of one family."""

import math

from holdfast import _C
from holdfast.distributions.bernoulli import Bernoulli
from holdfast.distributions.beta import Beta
from holdfast.distributions.binomial import Binomial
from holdfast.distributions.categorical import Categorical
from holdfast.distributions.cauchy import Cauchy
from holdfast.distributions.dirichlet import Dirichlet
from holdfast.distributions.exp_family import ExponentialFamily, natural_slopes
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.geometric import Geometric
from holdfast.distributions.gumbel import Gumbel
from holdfast.distributions.half_normal import HalfNormal
from holdfast.distributions.independent import Independent
from holdfast.distributions.kl import kl_divergence, register_kl
from holdfast.distributions.laplace import Laplace
from holdfast.distributions.multivariate_normal import (
    MultivariateNormal,
    log_diagonal_sum,
    squared_length,
)
from holdfast.distributions.normal import Normal
from holdfast.distributions.one_hot_categorical import OneHotCategorical
from holdfast.distributions.parameters import EULER, sum_rightmost
from holdfast.distributions.poisson import Poisson
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.uniform import Uniform
from holdfast.distributions.wishart import Wishart
from holdfast.nn.functional import softplus

_ops = _C.ops


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = _ops.where(_ops.eq(q.probs, 0), math.inf, one)
    one = _ops.where(_ops.eq(p.probs, 0), 0.0, one)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = _ops.where(_ops.eq(q.probs, 1), math.inf, zero)
    return one + _ops.where(_ops.eq(p.probs, 1), 0.0, zero)


@register_kl(Beta, Beta)
def _beta(p, q):
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if _ops.any(p.total_count < q.total_count).item():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    one = p.probs * (p.logits - q.logits) + _ops.log1p(-p.probs) - _ops.log1p(-q.probs)
    return _ops.where(p.total_count > q.total_count, math.inf, p.total_count * one)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _ops.where(_ops.eq(q.probs, 0), math.inf, terms)
    return _ops.where(_ops.eq(p.probs, 0), 0.0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    # Chyzak & Nielsen 2019.
    total = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return _ops.log(total) - _ops.log(4 * p.scale * q.scale)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    slope = _ops.digamma(a) - _ops.digamma(total).unsqueeze(-1)
    return (
        _ops.lgamma(total)
        - _ops.lgamma(b.sum(-1))
        - (_ops.lgamma(a) - _ops.lgamma(b)).sum(-1)
        + ((a - b) * slope).sum(-1)
    )


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - _ops.log(ratio)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "be computed using Bregman divergences. "
            f"Got {type(p).__name__} and {type(q).__name__}."
        )
    of_p, normalizer, slopes = natural_slopes(p)
    of_q = q._natural_params
    result = q._log_normalizer(*of_q) - normalizer
    for a, b, slope in zip(of_p, of_q, slopes):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (
        q.concentration * _ops.log(p.rate / q.rate)
        + _ops.lgamma(q.concentration)
        - _ops.lgamma(p.concentration)
        + (p.concentration - q.concentration) * _ops.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - _ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    far = _ops.exp(_ops.lgamma(1 + ratio) - shift)
    return shift - _ops.log(ratio) + ratio * EULER + far - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    count = p.reinterpreted_batch_ndims
    if count != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independents needs equal reinterpreted_batch_ndims. "
            f"Got {count} and {q.reinterpreted_batch_ndims}."
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), count)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, _ops.abs(p.loc - q.loc)
    near = ratio * _ops.exp(-distance / p.scale)
    return distance / q.scale + near - 1 - _ops.log(ratio)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event "
            f"shapes cannot be computed. Got {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}."
        )
    # The trace of q's precision times p's covariance, column by column of a factor.
    columns = squared_length(q._tril.unsqueeze(-3), p._tril.mT).sum(-1)
    distance = squared_length(q._tril, q.loc - p.loc)
    logs = log_diagonal_sum(q._tril) - log_diagonal_sum(p._tril)
    return logs + 0.5 * (columns + distance - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    distance = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - _ops.log(ratio))


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (_ops.log(p.rate) - _ops.log(q.rate)) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    """A divergence does not change under the same invertible functions."""
    if p.transforms != q.transforms or tuple(p.event_shape) != tuple(q.event_shape):
        raise NotImplementedError(
            "KL between TransformedDistributions needs equal transforms and event "
            f"shapes. Got {p.transforms} and {q.transforms}."
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    outside = (q.low > p.low) | (q.high < p.high)
    ratio = (q.high - q.low) / (p.high - p.low)
    return _ops.where(outside, math.inf, _ops.log(ratio))


@register_kl(Wishart, Wishart)
def _wishart(p, q):
    return p._divergence(q)
