# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions against SciPy and against what defines them."""

import math

import numpy as np
import pytest
import scipy.stats

import holdfast
from holdfast import distributions as D

pytestmark = pytest.mark.usefixtures("torch")
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


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 7.0, 150.0, 2e4])
def test_the_gamma_distribution_function(a):
    peer = scipy.stats.gamma(a, scale=1 / 1.7)
    points = peer.ppf([0.0, 1e-6, 0.01, 0.3, 0.9, 0.99999])
    x = holdfast.tensor([*points, 1e30, math.inf], dtype=holdfast.float64)
    shape, rate = number(a).requires_grad_(), number(1.7).requires_grad_()
    cdf = D.Gamma(shape, rate).cdf(x.requires_grad_())
    expected = peer.cdf(x.detach().numpy())
    np.testing.assert_allclose(cdf.detach().numpy(), expected, rtol=1e-9, atol=1e-300)
    points = points[points > 1e-300]
    x = number(points).requires_grad_()
    total = D.Gamma(shape, rate).cdf(x).sum()
    slope, *slopes = holdfast.autograd.grad(total, [x, shape, rate])
    np.testing.assert_allclose(slope.numpy(), peer.pdf(points), rtol=1e-8)
    ends, h = [], 1e-5
    for a1, r1 in ((a * (1 + h), 1.7), (a * (1 - h), 1.7), (a, 1.7 + h), (a, 1.7 - h)):
        ends.append(scipy.special.gammainc(a1, r1 * points).sum())
    assert slopes[0].item() == pytest.approx(
        (ends[0] - ends[1]) / (2 * h * a), rel=1e-4
    )
    assert slopes[1].item() == pytest.approx((ends[2] - ends[3]) / (2 * h), rel=1e-4)
    assert D.Chi2(number(3.0)).cdf(number(2.0)).item() == pytest.approx(
        scipy.stats.chi2(3).cdf(2.0)
    )


def test_wishart_in_a_batch():
    """PyTorch 1.13 is wrong there: entries against each by itself, and samples."""
    df, covariance = number([4.5, 8.0]), number([[2.0, 0.5], [0.5, 1.0]])
    other = D.Wishart(number([3.5, 9.0]), number([[1.0, -0.5], [-0.5, 4.0]]))
    divergence = D.kl_divergence(D.Wishart(df, covariance), other)
    holdfast.manual_seed(6)
    for i in range(2):
        p = D.Wishart(df[i], covariance)
        q = D.Wishart(other.df[i], other.covariance_matrix[i])
        assert D.kl_divergence(p, q).item() == pytest.approx(divergence[i].item())
        drawn = p.sample((20000,))
        np.testing.assert_allclose(
            drawn.mean(0).numpy(), p.mean.numpy(), rtol=0.03, atol=0.1
        )
        ratio = (p.log_prob(drawn) - q.log_prob(drawn)).mean().item()
        assert divergence[i].item() == pytest.approx(ratio, rel=0.05)


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


def test_inverse_gamma():
    p, peer = D.InverseGamma(number(4.5), number(1.7)), scipy.stats.invgamma(
        4.5, scale=1.7
    )
    np.testing.assert_allclose(
        p.log_prob(number(POINTS)).numpy(), peer.logpdf(POINTS), **CLOSE
    )
    assert p.mean.item() == pytest.approx(peer.mean())
    assert p.variance.item() == pytest.approx(peer.var())
    assert p.entropy().item() == pytest.approx(float(peer.entropy()), rel=1e-6)
    grid = np.linspace(0.1, 1, 9001)
    assert p.mode.item() == pytest.approx(grid[peer.pdf(grid).argmax()], abs=1e-4)
    holdfast.manual_seed(1)
    drawn = p.expand((3,)).sample((7000,)).numpy().ravel()
    assert scipy.stats.kstest(drawn, peer.cdf).statistic < 0.017
    heavy = D.InverseGamma(number(0.5), number(1.0))
    assert heavy.mean.item() == heavy.variance.item() == math.inf
    with pytest.raises(ValueError, match="Expected parameter concentration"):
        D.InverseGamma(0.0, 1.0)


@pytest.mark.parametrize("concentration", [1e-9, 1e-3, 0.5, 4.0, 700.0, 1e5])
def test_von_mises_of_any_concentration(concentration):
    """Density, circular variance and the samples' distribution function."""
    p = D.VonMises(number(0.7), number(concentration))
    peer = scipy.stats.vonmises(concentration)
    x = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose(
        p.log_prob(number(x + 0.7)).numpy(), peer.logpdf(x), rtol=1e-9, atol=1e-9
    )
    ratio = scipy.special.ive(1, concentration) / scipy.special.ive(0, concentration)
    assert p.variance.item() == pytest.approx(1 - ratio, abs=1e-12)
    holdfast.manual_seed(2)
    drawn = p.sample((20000,)).numpy()
    assert drawn.min() >= -math.pi and drawn.max() < math.pi
    around = np.remainder(drawn - 0.7 + math.pi, 2 * math.pi) - math.pi
    assert scipy.stats.kstest(around, peer.cdf).statistic < 0.017


def test_low_rank_normal_is_a_multivariate_normal():
    factor = np.random.default_rng(1).normal(size=(2, 5, 2))
    diagonal = np.linspace(0.5, 2.0, 5)
    p = D.LowRankMultivariateNormal(
        number(np.arange(5.0)), *map(number, (factor, diagonal))
    )
    covariance = factor @ np.swapaxes(factor, -1, -2) + np.diag(diagonal)
    q = D.MultivariateNormal(number(np.arange(5.0)), number(covariance))
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance"):
        ours, theirs = getattr(p, name).numpy(), getattr(q, name).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
    assert abs(D.kl_divergence(p, q).sum().item()) < 1e-9
    holdfast.manual_seed(1)
    drawn = p.sample((20000,)).numpy()[:, 1]
    assert np.abs(np.cov(drawn.T) - covariance[1]).max() < 0.25
    other = D.LowRankMultivariateNormal(
        *map(number, (np.ones(4), factor[0, :4], diagonal[:4]))
    )
    with pytest.raises(ValueError, match=r"event shapes .* \(5,\) and \(4,\)"):
        D.kl_divergence(p, other)


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
        (lambda: D.VonMises(0.0, 0.0), "Expected parameter concentration"),
        (
            lambda: D.LowRankMultivariateNormal(
                number(np.zeros(3)), number(np.ones((2, 1))), number(np.ones(3))
            ),
            r"shapes \(3,\), \(2, 1\) and \(3,\)",
        ),
        (
            lambda: D.LowRankMultivariateNormal(
                number(np.zeros((2, 1))), number(np.ones((3, 1, 1))), number(np.ones(1))
            ),
            "Incompatible batch shapes",
        ),
        (
            lambda: D.LowRankMultivariateNormal(
                number(np.zeros(1)), number(np.ones((1, 1))), number(np.zeros(1))
            ),
            "Expected parameter cov_diag",
        ),
        (lambda: D.FisherSnedecor(0.0, 1.0), "Expected parameter df1"),
        (lambda: D.NegativeBinomial(-1.0, 0.5), "Expected parameter total_count"),
        (lambda: D.NegativeBinomial(1.0, 1.0), "Expected parameter probs"),
        (lambda: D.NegativeBinomial(1.0), "not both"),
        (lambda: D.LogisticNormal(0.0, -1.0), "Expected parameter scale"),
        (lambda: D.LKJCholesky(1), "greater than or equal to 2. Found 1"),
        (lambda: D.LKJCholesky(3, -1.0), "Expected parameter concentration"),
        (lambda: D.Wishart(1.0, number(np.eye(2))), "greater than ndim - 1 = 1"),
        (lambda: D.Wishart(5.0, number(-np.eye(2))), "Expected parameter covar"),
        (lambda: D.Wishart(5.0), "Exactly one of"),
        (lambda: D.ContinuousBernoulli(1.5), "Expected parameter probs"),
        (lambda: D.ContinuousBernoulli(0.5, 0.5), "not both"),
    ],
)
def test_bad_parameters(make, match):
    with pytest.raises(ValueError, match=match):
        make()
