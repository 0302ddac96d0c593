# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions against SciPy and against what defines them."""

import math

import numpy as np
import pytest
import scipy.stats

import holdfast
from holdfast import distributions as D

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
POINTS = np.array([0.05, 0.4, 0.9, 1.7, 6.0])


def number(x):
    return holdfast.tensor(x, dtype=holdfast.float64)


SCIPY = {
    "HalfCauchy": (
        lambda: D.HalfCauchy(number(1.7)),
        scipy.stats.halfcauchy(scale=1.7),
        POINTS,
    ),
    "Weibull": (
        lambda: D.Weibull(number(1.7), number(2.2)),
        scipy.stats.weibull_min(2.2, scale=1.7),
        POINTS,
    ),
    "Pareto": (
        lambda: D.Pareto(number(1.7), number(2.6)),
        scipy.stats.pareto(2.6, scale=1.7),
        1.7 + POINTS,
    ),
}


@pytest.mark.parametrize("name", SCIPY)
def test_against_scipy(name):
    make, peer, points = SCIPY[name]
    p, x = make(), number(points)
    np.testing.assert_allclose(p.log_prob(x).numpy(), peer.logpdf(points), **CLOSE)
    cdf = p.cdf(x)
    np.testing.assert_allclose(cdf.numpy(), peer.cdf(points), **CLOSE)
    np.testing.assert_allclose(p.icdf(cdf).numpy(), points, rtol=1e-7)
    assert p.mean.item() == pytest.approx(peer.mean())
    assert p.variance.item() == pytest.approx(peer.var())
    assert p.entropy().item() == pytest.approx(float(peer.entropy()), rel=1e-6)


def test_kumaraswamy():
    """Moments, entropy and mode from the density, by sums over a fine grid."""
    a, b = np.array([2.0, 1.5, 5.0]), np.array([3.0, 6.0, 1.2])
    p = D.Kumaraswamy(number(a), number(b))
    x = (np.arange(200000) + 0.5) / 200000
    density = np.exp(p.log_prob(number(x[:, None])).numpy())
    mean = (x[:, None] * density).mean(0)
    np.testing.assert_allclose(density.mean(0), 1, rtol=1e-6)
    np.testing.assert_allclose(p.mean.numpy(), mean, rtol=1e-6)
    spread = ((x[:, None] - mean) ** 2 * density).mean(0)
    np.testing.assert_allclose(p.variance.numpy(), spread, rtol=1e-5)
    np.testing.assert_allclose(p.mode.numpy(), x[density.argmax(0)], atol=1e-5)
    entropy = -(density * np.log(density)).mean(0)
    np.testing.assert_allclose(p.entropy().numpy(), entropy, rtol=1e-4, atol=1e-6)
    flat = D.Kumaraswamy(number([0.5, 2.0, 1.0]), number([2.0, 0.5, 1.0]))
    assert np.isnan(flat.mode.numpy()).all()


def test_relaxed_ones_become_discrete():
    """Near temperature 0 the samples are those of the discrete distribution."""
    holdfast.manual_seed(0)
    drawn = D.RelaxedBernoulli(0.01, probs=number([0.2, 0.7])).sample((20000,))
    np.testing.assert_allclose(drawn.mean(0).numpy(), [0.2, 0.7], atol=0.02)
    weights = number([0.5, 0.2, 0.3])
    drawn = D.RelaxedOneHotCategorical(0.01, probs=weights).sample((20000,))
    np.testing.assert_allclose(drawn.sum(-1).numpy(), 1, rtol=1e-9)
    np.testing.assert_allclose(drawn.mean(0).numpy(), weights.numpy(), atol=0.02)


def test_continuous_bernoulli_around_a_half():
    """The series goes on where the formulas end, in values and slopes."""
    near = number([0.4989, 0.4991, 0.5009, 0.5011]).requires_grad_()
    p = D.ContinuousBernoulli(near)
    exact = D.ContinuousBernoulli(near, lims=(0.49999999, 0.50000001))
    for name in ("log_norm", "mean", "variance", "entropy"):
        ours, theirs = getattr(p, name), getattr(exact, name)
        if callable(ours):
            ours, theirs = ours(), theirs()
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-6)
    half = number(0.5).requires_grad_()
    D.ContinuousBernoulli(half).log_prob(number(0.25)).backward()
    assert math.isfinite(half.grad.item())
    general = D.ExponentialFamily.entropy(D.ContinuousBernoulli(number([0.2, 0.9])))
    own = D.ContinuousBernoulli(number([0.2, 0.9])).entropy()
    np.testing.assert_allclose(general.tolist(), own.tolist(), rtol=1e-9)


@pytest.mark.parametrize(
    "make,match",
    [
        (lambda: D.HalfCauchy(-1.0), "Expected parameter scale"),
        (lambda: D.Weibull(1.0, 0.0), "Expected parameter concentration"),
        (lambda: D.Pareto(1.0, -2.0), "Expected parameter alpha"),
        (lambda: D.Kumaraswamy(0.0, 1.0), "Expected parameter concentration1"),
        (lambda: D.RelaxedBernoulli(1.0), "not both"),
        (lambda: D.RelaxedBernoulli(1.0, 1.5), "Expected parameter probs"),
        (lambda: D.RelaxedOneHotCategorical(1.0, number(0.5)), "at least one-dim"),
        (lambda: D.ContinuousBernoulli(1.5), "Expected parameter probs"),
        (lambda: D.ContinuousBernoulli(0.5, 0.5), "not both"),
    ],
)
def test_bad_parameters(make, match):
    with pytest.raises(ValueError, match=match):
        make()
