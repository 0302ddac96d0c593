# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What distributions draw: against PyTorch's numbers and probabilities, with fixed
seeds, and how it changes with the parameters."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

import holdfast
from distribution_family_cases import CASES
from holdfast import distributions as D
from torch_peer import leaves, torch

pytestmark = pytest.mark.usefixtures("torch")
COUNT = 20000
VECTORS = ("OneHot", "Multinomial")
CONTINUOUS = [c for c in CASES if not c.discrete]
COUNTS = [c for c in CASES if c.discrete and not c.name.startswith(VECTORS)]


def both(case):
    ours, theirs = leaves(case.arrays, 0)
    return case.make(D, *ours), case.make(torch.distributions, *theirs)


def columns(sample):
    """The samples of each number by itself, [numbers, COUNT]."""
    return sample.detach().numpy().reshape((COUNT, -1)).T


def kolmogorov_smirnov(a, b):
    """The largest distance of two samples' distribution functions."""
    a, b = np.sort(a), np.sort(b)
    points = np.concatenate([a, b])
    below = [np.searchsorted(x, points, side="right") / len(x) for x in (a, b)]
    return np.abs(below[0] - below[1]).max()


@pytest.mark.parametrize("case", CONTINUOUS, ids=lambda c: c.name)
def test_continuous(case):
    p, q = both(case)
    holdfast.manual_seed(3)
    torch.manual_seed(3)
    # Two samples of one distribution are further apart once in 1e5 times.
    limit = math.sqrt(math.log(2e5) / 2) * math.sqrt(2 / COUNT)
    for ours, theirs in zip(columns(p.sample((COUNT,))), columns(q.sample((COUNT,)))):
        assert kolmogorov_smirnov(ours, theirs) < limit


@pytest.mark.parametrize("case", COUNTS, ids=lambda c: c.name)
def test_discrete(case):
    p, q = both(case)
    holdfast.manual_seed(4)
    drawn = p.sample((COUNT,)).numpy().reshape((COUNT, -1)).astype(np.int64)
    values = np.arange(drawn.max() + 1)
    shape = (-1,) + (1,) * len(q.batch_shape)
    of_values = torch.tensor(values.reshape(shape), dtype=torch.float64)
    q._validate_args = False
    expected = COUNT * q.log_prob(of_values).exp().numpy()
    for column, terms in zip(drawn.T, expected.reshape((len(values), -1)).T):
        seen = np.bincount(column, minlength=len(values)).astype(float)
        common = terms > 5
        rest = terms[~common].sum() + COUNT - terms.sum()
        chi = ((seen - terms)[common] ** 2 / terms[common]).sum()
        chi += (seen[~common].sum() - rest) ** 2 / max(rest, 5)
        freedom = common.sum()
        assert chi < freedom + 5 * math.sqrt(2 * freedom) + 5, (seen, terms)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: D.OneHotCategorical(w),
        lambda w: D.Multinomial(7, w),
        lambda w: D.Independent(D.Binomial(7, w), 1),
    ],
)
def test_vectors_of_counts(make):
    weights = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])
    p = make(holdfast.tensor(weights))
    drawn = p.sample((COUNT,)).numpy()
    n = 1 if isinstance(p, D.OneHotCategorical) else 7
    for i, w in enumerate(weights):
        spread = n * (np.diag(w) - np.outer(w, w))
        if isinstance(p, D.Independent):
            spread = np.diag(np.diag(spread))
        assert np.abs(drawn[:, i].mean(0) - n * w).max() < 5 * math.sqrt(n / COUNT)
        assert np.abs(np.cov(drawn[:, i].T) - spread).max() < 0.06 * n
    if n == 7 and not isinstance(p, D.Independent):
        assert (drawn.sum(-1) == 7).all()


def test_vectors_of_normals():
    a = np.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [-1.0, 1.0, 1.5]])
    p = D.MultivariateNormal(
        holdfast.tensor([1.0, 2.0, 3.0], dtype=holdfast.float64),
        precision_matrix=holdfast.tensor(np.linalg.inv(a @ a.T)),
    )
    drawn = p.sample((COUNT,)).numpy()
    assert np.abs(drawn.mean(0) - [1, 2, 3]).max() < 0.08
    assert np.abs(np.cov(drawn.T) - a @ a.T).max() < 0.2


@pytest.mark.parametrize("total", [0, 1, 16, 17, 100, 5000, 10**6])
def test_binomial_of_any_size(total):
    p = np.array([0.0, 0.003, 0.3, 0.5, 0.98, 1.0])
    drawn = D.Binomial(total, holdfast.tensor(p)).sample((COUNT,)).numpy()
    assert drawn.min() >= 0 and drawn.max() <= total
    assert (drawn == np.round(drawn)).all()
    variance = total * p * (1 - p)
    far = np.abs(drawn.mean(0) - total * p)
    assert (far <= 5 * np.sqrt(variance / COUNT)).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.08, atol=1e-3)


def test_binomial_of_several_sizes():
    total = holdfast.tensor([0.0, 3.0, 40.0, 1000.0])
    drawn = D.Binomial(total, holdfast.full((4,), 0.25)).sample((COUNT,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), [0, 0.75, 10, 250], rtol=0.02)
    assert (drawn.max(0) <= [0, 3, 40, 1000]).all()


@pytest.mark.parametrize("shape", [1e-3, 0.05, 1.0, 3.0, 1e5])
def test_gamma_of_any_shape(shape):
    drawn = D.Gamma(shape, 2.0).sample((COUNT,)).numpy()
    assert (drawn > 0).all() and np.isfinite(drawn).all()
    assert abs(drawn.mean() - shape / 2) < 5 * math.sqrt(shape / 4 / COUNT)
    parts = D.Dirichlet(holdfast.full((3,), shape)).sample((2000,)).numpy()
    assert np.abs(parts.sum(-1) - 1).max() < 1e-5
    assert np.abs(parts.mean(0) - 1 / 3).max() < 0.06


# Which numbers are rejected depends on the parameters, so that nothing can be seen
# by moving these.
REJECTING = ("Gamma", "Chi2", "Beta", "Dirichlet", "StudentT", "Mix", "VonMises")
REPARAMETRISED = [
    c
    for c in CONTINUOUS
    if not c.name.startswith((*REJECTING, "Fisher", "Wishart", "LKJ"))
]


def along(make, arrays, step, directions):
    """A sum over what is drawn, with all parameters moved by `step`."""
    holdfast.manual_seed(9)
    moved = [a + step * d for a, d in zip(arrays, directions)]
    tensors = [holdfast.tensor(a, requires_grad=True) for a in moved]
    drawn = make(D, *tensors).rsample((3,))
    weights = np.linspace(-1, 1, drawn.numel()).reshape(tuple(drawn.shape))
    return (drawn * holdfast.tensor(weights)).sum(), tensors


def assert_slopes(make, arrays, directions):
    total, tensors = along(make, arrays, 0.0, directions)
    total.backward()
    slope = sum(
        (t.grad.numpy() * d).sum() for t, d in zip(tensors, directions) if np.any(d)
    )
    high, low = (along(make, arrays, h, directions)[0].item() for h in (1e-6, -1e-6))
    assert slope == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("case", REPARAMETRISED, ids=lambda c: c.name)
def test_gradients_of_rsample(case):
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=a.shape) for a in case.arrays]
    if case.name.startswith("MultivariateNormal"):  # stays symmetric, triangular
        d = directions[1]
        tril = case.name.endswith("tril")
        directions[1] = np.tril(d) if tril else d + np.swapaxes(d, -1, -2)
    assert_slopes(case.make, case.arrays, directions)


def test_gradients_beside_the_shape():
    """Of a rate, a place and a scale; the shape's have no formula yet."""
    shape = np.array([0.5, 3.0])
    assert_slopes(
        lambda D, rate: D.Gamma(holdfast.tensor(shape), rate),
        [np.array([1.5, 0.2])],
        [np.array([1.0, 0.5])],
    )
    assert_slopes(
        lambda D, loc, scale: D.StudentT(holdfast.tensor(shape), loc, scale),
        [np.zeros(2), np.ones(2)],
        [np.ones(2), np.ones(2)],
    )
    tril = np.linalg.cholesky(np.array([[2.0, 0.3], [0.3, 1.0]]))
    assert_slopes(
        lambda D, tril: D.Wishart(3.5, scale_tril=tril),
        [tril],
        [np.array([[1.0, 0.0], [0.5, -0.2]])],
    )


@pytest.mark.parametrize("a", [1e-3, 0.2, 1.0, 3.5, 40.0, 9e3, 3e4])
def test_gamma_numbers_move_with_their_shape(a):
    """So that the distribution function at each stays as it is."""
    holdfast.manual_seed(3)
    shape = holdfast.full((200,), a, dtype=holdfast.float64, requires_grad=True)
    drawn = D.Gamma(shape, 1.0).rsample()
    drawn.log().sum().backward()
    x = drawn.detach().numpy()
    usual = x > 1e-290
    x, slope = x[usual], shape.grad.numpy()[usual]
    h = 1e-4 * a
    up, down = (np.log(scipy.special.gammainc(a + s, x)) for s in (h, -h))
    density = scipy.stats.gamma.logpdf(x, a) + np.log(x)
    log_p = np.log(scipy.special.gammainc(a, x))
    expected = -np.exp(log_p - density) * (up - down) / (2 * h)
    np.testing.assert_allclose(slope, expected, rtol=2e-4 if a < 1e4 else 1e-3)


@pytest.mark.parametrize(
    "make, mean",
    [
        (lambda a: D.Beta(a, 2.0), lambda a: a / (a + 2)),
        (lambda a: D.Beta(2.0, a), lambda a: 2 / (a + 2)),
        (lambda a: D.Chi2(a), lambda a: a),
        (lambda a: D.InverseGamma(a + 2, 1.0), lambda a: 1 / (a + 1)),
        (lambda a: D.FisherSnedecor(3.0, a + 4), lambda a: (a + 4) / (a + 2)),
    ],
)
def test_slopes_of_means(make, mean):
    holdfast.manual_seed(4)
    a = holdfast.tensor(2.5, dtype=holdfast.float64, requires_grad=True)
    drawn = make(a).rsample((40_000,))
    drawn.mean().backward()
    b = holdfast.tensor(2.5, dtype=holdfast.float64, requires_grad=True)
    mean(b).backward()
    assert a.grad.item() == pytest.approx(b.grad.item(), rel=0.05)
    assert not make(a).sample().requires_grad


def test_slopes_of_probability_vectors():
    holdfast.manual_seed(4)
    a = holdfast.tensor([0.3, 1.0, 4.0], dtype=holdfast.float64, requires_grad=True)
    weights = holdfast.tensor([1.0, -2.0, 0.5], dtype=holdfast.float64)
    (D.Dirichlet(a).rsample((40_000,)).mean(0) * weights).sum().backward()
    b = a.detach().clone().requires_grad_()
    (b / b.sum() * weights).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=0.06, atol=0.01)
    df = holdfast.tensor(5.0, dtype=holdfast.float64, requires_grad=True)
    (D.StudentT(df).rsample((100_000,)) ** 2).mean().backward()
    assert df.grad.item() == pytest.approx(-2 / 9, rel=0.15)  # of df / (df - 2)


def test_straight_through():
    logits = holdfast.tensor([0.5, 1.0, -1.0], requires_grad=True)
    p = D.OneHotCategoricalStraightThrough(logits=logits)
    drawn = p.rsample((4,))
    assert ((drawn.detach().round() - drawn.detach()).abs() < 1e-6).all().item()
    (drawn * holdfast.tensor([1.0, 2.0, 3.0])).sum().backward()
    expected = holdfast.tensor([0.5, 1.0, -1.0], requires_grad=True)
    (4 * expected.softmax(0) * holdfast.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert holdfast.allclose(logits.grad, expected.grad, atol=1e-6)


def test_one_seed_gives_the_same_samples():
    for p in (
        D.Normal(0.0, 1.0),
        D.Gamma(0.3, 1.0),
        D.Binomial(100, 0.3),
        D.Categorical(holdfast.ones(5)),
    ):
        holdfast.manual_seed(5)
        first = p.sample((50,)).tolist()
        second = p.sample((50,)).tolist()
        holdfast.manual_seed(5)
        assert p.sample((50,)).tolist() == first != second


def test_policy_gradient():
    """A program: the better of two actions is learnt by its samples' rewards."""
    logits = holdfast.zeros(3, requires_grad=True)
    optimizer = holdfast.optim.SGD([logits], lr=0.5)
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        actions = policy.sample((64,))
        rewards = (actions == 1).float()
        loss = -(policy.log_prob(actions) * (rewards - rewards.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[1].item() > 0.9
