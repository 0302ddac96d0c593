# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions with parameters and values, for comparison with PyTorch.

A case makes the same distribution of either library: make(D, *tensors) with D the
module `distributions` and the tensors of `arrays` in float64.
"""

import dataclasses

import numpy as np

rng = np.random.default_rng(20)


def positive(*shape):
    return rng.uniform(0.3, 3.0, shape)


def real(*shape):
    return rng.normal(size=shape)


def simplex(*shape):
    weights = rng.uniform(0.2, 1.0, shape)
    return weights / weights.sum(-1, keepdims=True)


def covariance(*shape):
    a = rng.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])


@dataclasses.dataclass
class Case:
    name: str
    make: object
    arrays: list
    value: np.ndarray  # samples, [..., batch, event]
    discrete: bool = False
    # Of what is drawn too few would be seen to compare moments.
    heavy: bool = False


def case(name, make, arrays, value, **marks):
    return Case(name, make, arrays, np.asarray(value, np.float64), **marks)


PROBS = rng.uniform(0.1, 0.9, (4,))
BITS = rng.integers(0, 2, (3, 4))
UNIT = rng.uniform(0.05, 0.95, (5, 4))

CASES = [
    case("Normal", lambda D, a, b: D.Normal(a, b), [real(4), positive(4)], real(5, 4)),
    case(
        "Normal_broadcast",
        lambda D, a, b: D.Normal(a, b),
        [real(2, 1), positive(3)],
        real(4, 2, 3),
    ),
    case("Normal_number", lambda D, a: D.Normal(0.5, a), [positive(1)], real(3, 1)),
    case(
        "LogNormal",
        lambda D, a, b: D.LogNormal(a, b),
        [real(4), rng.uniform(0.2, 0.6, 4)],
        positive(5, 4),
    ),
    case("Bernoulli_probs", lambda D, p: D.Bernoulli(p), [PROBS], BITS, discrete=True),
    case(
        "Bernoulli_logits",
        lambda D, x: D.Bernoulli(logits=x),
        [4 * real(4)],
        BITS,
        discrete=True,
    ),
    case(
        "Categorical_probs",
        lambda D, p: D.Categorical(p),
        [positive(3, 5)],
        rng.integers(0, 5, (6, 3)),
        discrete=True,
    ),
    case(
        "Categorical_logits",
        lambda D, x: D.Categorical(logits=x),
        [3 * real(3, 5)],
        rng.integers(0, 5, (6, 3)),
        discrete=True,
    ),
    case(
        "Categorical_one",
        lambda D, x: D.Categorical(logits=x),
        [real(5)],
        rng.integers(0, 5, (6,)),
        discrete=True,
    ),
    case(
        "OneHotCategorical",
        lambda D, p: D.OneHotCategorical(p),
        [positive(3, 5)],
        np.eye(5)[rng.integers(0, 5, (6, 3))],
        discrete=True,
    ),
    case(
        "Uniform",
        lambda D, a, b: D.Uniform(a, a + b),
        [np.array([-1.0, 0.0, 0.5, 3.0]), np.array([2.0, 1.0, 0.4, 3.0])],
        np.array([-1.0, 0.0, 0.5, 3.0]) + UNIT * np.array([2.0, 1.0, 0.4, 3.0]),
    ),
    case("Exponential", lambda D, a: D.Exponential(a), [positive(4)], positive(5, 4)),
    case(
        "Laplace", lambda D, a, b: D.Laplace(a, b), [real(4), positive(4)], real(5, 4)
    ),
    case(
        "Cauchy",
        lambda D, a, b: D.Cauchy(a, b),
        [real(4), positive(4)],
        real(5, 4),
        heavy=True,
    ),
    case("Gumbel", lambda D, a, b: D.Gumbel(a, b), [real(4), positive(4)], real(5, 4)),
    case("HalfNormal", lambda D, a: D.HalfNormal(a), [positive(4)], positive(5, 4)),
    case(
        "Gamma",
        lambda D, a, b: D.Gamma(a, b),
        [np.array([0.2, 0.9, 1.0, 7.5]), positive(4)],
        positive(5, 4),
    ),
    case("Chi2", lambda D, a: D.Chi2(a), [positive(4)], positive(5, 4)),
    case(
        "Beta",
        lambda D, a, b: D.Beta(a, b),
        [np.array([0.5, 2.0, 1.5, 8.0]), np.array([0.5, 3.0, 1.2, 2.0])],
        UNIT,
    ),
    case(
        "Dirichlet",
        lambda D, a: D.Dirichlet(a),
        [np.array([[0.5, 2.0, 1.5], [3.0, 1.1, 8.0]])],
        simplex(4, 2, 3),
    ),
    case(
        "StudentT",
        lambda D, a, b, c: D.StudentT(a, b, c),
        [np.array([0.8, 1.5, 5.0, 30.0]), real(4), positive(4)],
        real(5, 4),
        heavy=True,
    ),
    case(
        "Poisson",
        lambda D, a: D.Poisson(a),
        [np.array([0.3, 2.0, 15.0, 40.0])],
        rng.integers(0, 9, (5, 4)),
        discrete=True,
    ),
    case(
        "Geometric_probs",
        lambda D, a: D.Geometric(a),
        [PROBS],
        rng.integers(0, 9, (5, 4)),
        discrete=True,
    ),
    case(
        "Geometric_logits",
        lambda D, a: D.Geometric(logits=a),
        [real(4)],
        rng.integers(0, 9, (5, 4)),
        discrete=True,
    ),
    case(
        "Binomial_probs",
        lambda D, a: D.Binomial(9, a),
        [PROBS],
        rng.integers(0, 10, (5, 4)),
        discrete=True,
    ),
    case(
        "Binomial_logits",
        lambda D, a: D.Binomial(60, logits=a),
        [real(4)],
        rng.integers(0, 61, (5, 4)),
        discrete=True,
    ),
    case(
        "Multinomial",
        lambda D, a: D.Multinomial(6, a),
        [positive(2, 3)],
        np.array([[[1, 2, 3], [6, 0, 0]], [[2, 2, 2], [0, 5, 1]]]),
        discrete=True,
    ),
    case(
        "MultivariateNormal_covariance",
        lambda D, a, b: D.MultivariateNormal(a, b),
        [real(2, 3), covariance(3, 3)],
        real(4, 2, 3),
    ),
    case(
        "MultivariateNormal_precision",
        lambda D, a, b: D.MultivariateNormal(a, precision_matrix=b),
        [real(3), covariance(2, 3, 3)],
        real(4, 2, 3),
    ),
    case(
        "MultivariateNormal_scale_tril",
        lambda D, a, b: D.MultivariateNormal(a, scale_tril=b),
        [real(3), np.linalg.cholesky(covariance(3, 3))],
        real(4, 3),
    ),
    case(
        "Independent",
        lambda D, a, b: D.Independent(D.Normal(a, b), 1),
        [real(2, 3), positive(2, 3)],
        real(4, 2, 3),
    ),
    case(
        "Independent_none",
        lambda D, a, b: D.Independent(D.Normal(a, b), 0),
        [real(2, 3), positive(2, 3)],
        real(4, 2, 3),
    ),
    case(
        "Mixture_of_normals",
        lambda D, w, a, b: D.MixtureSameFamily(D.Categorical(w), D.Normal(a, b)),
        [positive(2, 3), real(2, 3), positive(2, 3)],
        real(4, 2),
    ),
    case(
        "Mixture_of_vectors",
        lambda D, w, a, b: D.MixtureSameFamily(
            D.Categorical(w), D.Independent(D.Normal(a, b), 1)
        ),
        [positive(3), real(3, 2), positive(3, 2)],
        real(4, 2),
    ),
    case(
        "Transformed_sigmoid",
        lambda D, a, b: D.TransformedDistribution(
            D.Normal(a, b), D.transforms.SigmoidTransform()
        ),
        [real(4), positive(4)],
        UNIT,
    ),
    case(
        "Transformed_chain",
        lambda D, a, b: D.TransformedDistribution(
            D.Normal(a, b),
            [
                D.transforms.AffineTransform(1.0, -2.0),
                D.transforms.ExpTransform(),
                D.transforms.PowerTransform(0.5),
            ],
        ),
        [real(4), 0.1 * positive(4)],
        positive(5, 4),
    ),
    case(
        "Transformed_tanh_vectors",
        lambda D, a, b: D.TransformedDistribution(
            D.Independent(D.Normal(a, b), 1), D.transforms.TanhTransform()
        ),
        [real(2, 3), positive(2, 3)],
        rng.uniform(-0.9, 0.9, (4, 2, 3)),
    ),
    case(
        "Transformed_wider",
        lambda D, a, b: D.TransformedDistribution(
            D.Normal(0.0, 1.0), D.transforms.AffineTransform(a, b)
        ),
        [real(4), positive(4)],
        real(5, 4),
    ),
]
NAMES = [c.name for c in CASES]

# Divergences: a case's name, or (p, q) made of float64 tensors.
PAIRS = {
    "beta_exponential": lambda D, t: (D.Beta(t(1.5), t(2.0)), D.Exponential(t(0.7))),
    "beta_gamma": lambda D, t: (D.Beta(t(1.5), t(2.0)), D.Gamma(t(2.0), t(0.7))),
    "beta_normal": lambda D, t: (D.Beta(t(1.5), t(2.0)), D.Normal(t(0.3), t(0.7))),
    "beta_uniform": lambda D, t: (D.Beta(t(1.5), t(2.0)), D.Uniform(t(-0.3), t(1.7))),
    "beta_uniform_inf": lambda D, t: (
        D.Beta(t(1.5), t(2.0)),
        D.Uniform(t(0.3), t(1.7)),
    ),
    "exponential_gamma": lambda D, t: (D.Exponential(t(1.5)), D.Gamma(t(2.0), t(0.7))),
    "exponential_gumbel": lambda D, t: (
        D.Exponential(t(1.5)),
        D.Gumbel(t(2.0), t(0.7)),
    ),
    "exponential_normal": lambda D, t: (
        D.Exponential(t(1.5)),
        D.Normal(t(2.0), t(0.7)),
    ),
    "exponential_beta": lambda D, t: (D.Exponential(t(1.5)), D.Beta(t(2.0), t(0.7))),
    "gamma_exponential": lambda D, t: (D.Gamma(t(1.5), t(2.0)), D.Exponential(t(0.7))),
    "gamma_gumbel": lambda D, t: (D.Gamma(t(1.5), t(2.0)), D.Gumbel(t(1.0), t(0.7))),
    "gamma_normal": lambda D, t: (D.Gamma(t(1.5), t(2.0)), D.Normal(t(1.0), t(0.7))),
    "gumbel_normal": lambda D, t: (D.Gumbel(t(1.5), t(2.0)), D.Normal(t(1.0), t(0.7))),
    "gumbel_gamma": lambda D, t: (D.Gumbel(t(1.5), t(2.0)), D.Gamma(t(1.0), t(0.7))),
    "laplace_normal": lambda D, t: (
        D.Laplace(t(1.5), t(2.0)),
        D.Normal(t(1.0), t(0.7)),
    ),
    "laplace_beta": lambda D, t: (D.Laplace(t(1.5), t(2.0)), D.Beta(t(1.0), t(0.7))),
    "normal_gumbel": lambda D, t: (D.Normal(t(1.5), t(2.0)), D.Gumbel(t(1.0), t(0.7))),
    "normal_laplace": lambda D, t: (
        D.Normal(t(1.5), t(2.0)),
        D.Laplace(t(1.0), t(0.7)),
    ),
    "normal_uniform": lambda D, t: (
        D.Normal(t(1.5), t(2.0)),
        D.Uniform(t(0.0), t(0.7)),
    ),
    "poisson_bernoulli": lambda D, t: (D.Poisson(t(1.5)), D.Bernoulli(t(0.2))),
    "bernoulli_poisson": lambda D, t: (D.Bernoulli(t(0.3)), D.Poisson(t(2.0))),
    "uniform_beta": lambda D, t: (D.Uniform(t(0.2), t(0.7)), D.Beta(t(2.0), t(0.7))),
    "uniform_beta_inf": lambda D, t: (
        D.Uniform(t(0.2), t(1.7)),
        D.Beta(t(2.0), t(0.7)),
    ),
    "uniform_exponential": lambda D, t: (
        D.Uniform(t(0.2), t(1.7)),
        D.Exponential(t(2.0)),
    ),
    "uniform_exponential_inf": lambda D, t: (
        D.Uniform(t(-0.2), t(1.7)),
        D.Exponential(t(2.0)),
    ),
    "uniform_gamma": lambda D, t: (D.Uniform(t(0.2), t(1.7)), D.Gamma(t(2.0), t(0.7))),
    "uniform_gumbel": lambda D, t: (
        D.Uniform(t(0.2), t(1.7)),
        D.Gumbel(t(2.0), t(0.7)),
    ),
    "uniform_normal": lambda D, t: (
        D.Uniform(t(0.2), t(1.7)),
        D.Normal(t(2.0), t(0.7)),
    ),
    "uniform_uniform_inf": lambda D, t: (
        D.Uniform(t(0.2), t(1.7)),
        D.Uniform(t(0.3), t(1.9)),
    ),
    "binomial_inf": lambda D, t: (D.Binomial(9, t(0.3)), D.Binomial(8, t(0.4))),
    "categorical_zeros": lambda D, t: (
        D.Categorical(t([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])),
        D.Categorical(t([[0.2, 0.8, 0.0], [0.2, 0.8, 0.0]])),
    ),
    "bernoulli_certain": lambda D, t: (
        D.Bernoulli(t([0.0, 1.0, 0.5, 0.5, 1.0])),
        D.Bernoulli(t([0.5, 0.5, 0.0, 1.0, 1.0])),
    ),
    "half_normal": lambda D, t: (D.HalfNormal(t(1.5)), D.HalfNormal(t(0.6))),
}
