# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Further distributions for comparison with PyTorch: tails, bounded ones, ones of
matrices; the cases of distribution_cases.py are among CASES."""

import numpy as np

from distribution_cases import CASES as COMMON
from distribution_cases import PAIRS as COMMON_PAIRS
from distribution_cases import (
    PROBS,
    UNIT,
    case,
    covariance,
    positive,
    real,
    rng,
    simplex,
)

CORRELATIONS = np.array(
    [
        [[1, 0.5, -0.3], [0.5, 1, 0.2], [-0.3, 0.2, 1]],
        [[1, 0.0, 0.9], [0.0, 1, 0.1], [0.9, 0.1, 1]],
        [[1, 0.0, 0.0], [0.0, 1, 0.0], [0.0, 0.0, 1]],
    ]
)
SHAPES = np.array([0.7, 1.0, 2.5, 6.0])

CASES = [
    *COMMON,
    case(
        "HalfCauchy",
        lambda D, a: D.HalfCauchy(a),
        [positive(4)],
        positive(5, 4),
        heavy=True,
    ),
    case(
        "Weibull",
        lambda D, a, b: D.Weibull(a, b),
        [positive(4), SHAPES],
        positive(5, 4),
    ),
    case(
        "Weibull_number", lambda D, a: D.Weibull(2.0, a), [positive(1)], positive(3, 1)
    ),
    case(
        "Pareto",
        lambda D, a, b: D.Pareto(a, b),
        [positive(4), SHAPES],
        3.1 + positive(5, 4),
        heavy=True,
    ),
    case(
        "Kumaraswamy",
        lambda D, a, b: D.Kumaraswamy(a, b),
        [SHAPES, np.array([0.6, 2.0, 1.0, 3.0])],
        UNIT,
    ),
    case(
        "RelaxedBernoulli_probs",
        lambda D, t, p: D.RelaxedBernoulli(t, p),
        [np.array(0.7), PROBS],
        UNIT,
    ),
    case(
        "RelaxedBernoulli_logits",
        lambda D, t, x: D.RelaxedBernoulli(t, logits=x),
        [np.array([0.3, 1.0, 2.0, 0.8]), real(4)],
        UNIT,
    ),
    case(
        "RelaxedOneHotCategorical_probs",
        lambda D, t, p: D.RelaxedOneHotCategorical(t, p),
        [np.array(0.7), positive(3, 5)],
        simplex(4, 3, 5),
    ),
    case(
        "RelaxedOneHotCategorical_logits",
        lambda D, t, x: D.RelaxedOneHotCategorical(t, logits=x),
        [np.array(1.5), real(5)],
        simplex(4, 5),
    ),
    case(
        "ContinuousBernoulli_probs",
        lambda D, p: D.ContinuousBernoulli(p),
        [np.array([0.1, 0.4995, 0.5, 0.97])],
        UNIT,
    ),
    case(
        "ContinuousBernoulli_logits",
        lambda D, x: D.ContinuousBernoulli(logits=x),
        [3 * real(4)],
        UNIT,
    ),
    case(
        "VonMises",
        lambda D, a, b: D.VonMises(a, b),
        [real(4), np.array([0.05, 1.0, 3.0, 40.0])],
        real(5, 4),
    ),
    case(
        "LowRankMultivariateNormal",
        lambda D, a, b, c: D.LowRankMultivariateNormal(a, b, c),
        [real(3), real(2, 3, 2), positive(3)],
        real(4, 2, 3),
    ),
    case(
        "FisherSnedecor",
        lambda D, a, b: D.FisherSnedecor(a, b),
        [np.array([0.7, 3.0, 5.0]), np.array([11.0, 12.0, 20.0])],
        positive(5, 3),
    ),
    case(
        "NegativeBinomial_probs",
        lambda D, n, p: D.NegativeBinomial(n, p),
        [np.array([1.0, 2.5, 7.0, 0.4]), np.array([0.1, 0.4, 0.6, 0.3])],
        rng.integers(0, 9, (5, 4)),
        discrete=True,
    ),
    case(
        "NegativeBinomial_logits",
        lambda D, x: D.NegativeBinomial(3.0, logits=x),
        [real(4) - 1],
        rng.integers(0, 9, (5, 4)),
        discrete=True,
    ),
    case(
        "LogisticNormal",
        lambda D, a, b: D.LogisticNormal(a, b),
        [real(2, 3), positive(3)],
        simplex(5, 2, 4),
    ),
    case(
        "LKJCholesky",
        lambda D, c: D.LKJCholesky(3, c),
        [np.array([0.7, 1.0, 4.0])],
        np.linalg.cholesky(CORRELATIONS),
    ),
    case(
        "Wishart_covariance",
        lambda D, n, c: D.Wishart(n, c),
        [np.array([4.5, 8.0]), covariance(2, 3, 3)],
        covariance(4, 2, 3, 3),
    ),
    case(
        "Wishart_tril",
        lambda D, c: D.Wishart(5.0, scale_tril=c.tril()),
        [np.linalg.cholesky(covariance(3, 3))],
        covariance(4, 3, 3),
    ),
    case(
        "Wishart_precision",
        lambda D, n, c: D.Wishart(n, precision_matrix=c),
        [np.array(6.5), covariance(2, 2)],
        covariance(4, 2, 2),
    ),
]
NAMES = [c.name for c in CASES]


def _pareto(D, t):
    return D.Pareto(t([1.5, 0.2, 3.0]), t([2.5, 0.8, 4.0]))


def _others(D, t):
    return {
        "beta": D.Beta(t(1.5), t(2.0)),
        "exponential": D.Exponential(t(0.7)),
        "gamma": D.Gamma(t(2.0), t(0.7)),
        "gumbel": D.Gumbel(t(1.0), t(0.7)),
        "laplace": D.Laplace(t(1.0), t(0.7)),
        "normal": D.Normal(t(1.0), t(0.7)),
        "uniform": D.Uniform(t(0.3), t(0.7)),
    }


def _low_rank(D, t):
    factor = [[0.5, 1.0], [-1.0, 0.3], [2.0, 0.1]]
    return D.LowRankMultivariateNormal(t([1.0, 0.0, 2.0]), t(factor), t([0.5, 1, 2]))


def _full_rank(D, t):
    tril = [
        [[1.0, 0, 0], [0.5, 2, 0], [-1, 0.3, 1]],
        [[2.0, 0, 0], [1, 1, 0], [0, 1, 3]],
    ]
    return D.MultivariateNormal(t([0.0, 0.5, 1.0]), scale_tril=t(tril))


BESIDE = ("beta", "exponential", "gamma", "gumbel", "laplace", "normal", "uniform")
PAIRS = {
    **COMMON_PAIRS,
    **{
        f"pareto_{name}": lambda D, t, name=name: (_pareto(D, t), _others(D, t)[name])
        for name in ("beta", "exponential", "gamma", "normal", "uniform")
    },
    **{
        f"{name}_pareto": lambda D, t, name=name: (
            _others(D, t)[name],
            D.Pareto(t(1.5), t(2.5)),
        )
        for name in ("beta", "exponential", "gamma", "gumbel", "laplace", "normal")
    },
    "wishart_wishart": lambda D, t: (
        D.Wishart(t(4.5), t([[2.0, 0.5], [0.5, 1.0]])),
        D.Wishart(t(3.5), scale_tril=t([[1.0, 0.0], [-0.5, 2.0]])),
    ),
    "pareto_pareto": lambda D, t: (
        _pareto(D, t),
        D.Pareto(t([1.0, 0.3, 3.0]), t([1.5, 0.8, 0.5])),
    ),
    **{
        f"continuous_bernoulli_{name}": lambda D, t, name=name: (
            D.ContinuousBernoulli(t(0.3)),
            _others(D, t)[name],
        )
        for name in ("exponential", "normal", "uniform")
    },
    **{
        f"{name}_continuous_bernoulli": lambda D, t, name=name: (
            _others(D, t)[name],
            D.ContinuousBernoulli(t(0.3)),
        )
        for name in BESIDE
    },
    "continuous_bernoulli_uniform_wide": lambda D, t: (
        D.ContinuousBernoulli(t([0.3, 0.4999])),
        D.Uniform(t(-0.1), t(1.5)),
    ),
    "continuous_bernoulli_pareto": lambda D, t: (
        D.ContinuousBernoulli(t([0.3, 0.8, 0.5])),
        _pareto(D, t),
    ),
    "pareto_continuous_bernoulli": lambda D, t: (
        _pareto(D, t),
        D.ContinuousBernoulli(t([0.3, 0.8, 0.5])),
    ),
    "low_rank_multivariate_normal": lambda D, t: (_low_rank(D, t), _full_rank(D, t)),
    "multivariate_normal_low_rank": lambda D, t: (_full_rank(D, t), _low_rank(D, t)),
    "uniform_pareto": lambda D, t: (
        D.Uniform(t([1.5, 0.1, 3.5]), t([2.0, 4.0, 5.0])),
        _pareto(D, t),
    ),
}
