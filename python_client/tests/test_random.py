# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions against SciPy's, from fixed seeds: the numbers, and with them
the verdicts, are the same in every run. A wrong formula shows in p-values far
below the bound."""

import numpy as np
import pytest
import scipy.stats as st

import holdfast as torch

COUNT = 200_000
P = 1e-3  # of a right one, one seed in a thousand falls below


def draws(function, seed=7, count=COUNT, dtype=torch.float64):
    torch.manual_seed(seed)
    return function(torch.empty(count, dtype=dtype)).double().numpy().copy()


CONTINUOUS = {
    "rand": (lambda t: torch.rand(len(t), dtype=t.dtype), st.uniform()),
    "randn": (lambda t: torch.randn(len(t), dtype=t.dtype), st.norm()),
    "uniform_": (lambda t: t.uniform_(-3, 5), st.uniform(-3, 8)),
    "normal_": (lambda t: t.normal_(2, 0.5), st.norm(2, 0.5)),
    "normal": (
        lambda t: torch.normal(torch.full_like(t, 1.0), torch.full_like(t, 3.0)),
        st.norm(1, 3),
    ),
    "_standard_gamma": (lambda t: torch._standard_gamma(t.fill_(2.5)), st.gamma(2.5)),
    "_sample_dirichlet": (
        lambda t: torch._sample_dirichlet(t.new_ones(len(t), 3))[:, 0],
        st.beta(1, 2),
    ),
    "exponential_": (lambda t: t.exponential_(0.5), st.expon(scale=2)),
    "cauchy_": (lambda t: t.cauchy_(1, 2), st.cauchy(1, 2)),
    "log_normal_": (lambda t: t.log_normal_(0.2, 0.7), st.lognorm(0.7, 0, np.exp(0.2))),
    "trunc_normal_": (
        lambda t: torch.nn.init.trunc_normal_(t, 0.5, 2.0, -1.0, 4.0),
        st.truncnorm(-0.75, 1.75, 0.5, 2.0),
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype):
    function, law = CONTINUOUS[name]
    x = draws(function, dtype=dtype)
    assert st.kstest(x, law.cdf).pvalue > P
    if np.isfinite(law.var()):
        error = law.std() / np.sqrt(COUNT)
        assert abs(x.mean() - law.mean()) < 4 * error
        kurtosis = float(law.stats("k")) + 2
        deviation = law.var() * np.sqrt(kurtosis / COUNT)
        assert abs(x.var() - law.var()) < 4 * deviation
    # Neighbours, and elements that share a counter, are independent. Ranks,
    # because some of these laws have no variance.
    ranks = st.rankdata(x)
    for lag in (1, 2, 3, 4, 8):
        correlation = np.corrcoef(ranks[lag:], ranks[:-lag])[0, 1]
        assert abs(correlation) < 4 / np.sqrt(COUNT), lag


def chi_square(x, law, low=None):
    """The p-value of counts of whole numbers, bins of few expected ones joined."""
    top = int(max(x.max(), law.ppf(1 - 1e-9)))
    bottom = int(min(x.min(), law.ppf(1e-9))) if low is None else low
    edges = np.arange(bottom, top + 2)
    expected = law.pmf(edges[:-1]) * len(x)
    seen = np.bincount((x - bottom).astype(int), minlength=len(expected))
    joined_seen, joined = [], []
    total_seen = total = 0.0
    for s, e in zip(seen, expected):
        total_seen, total = total_seen + s, total + e
        if total >= 10:
            joined_seen.append(total_seen)
            joined.append(total)
            total_seen = total = 0.0
    joined_seen[-1] += total_seen
    joined[-1] += total
    joined = np.array(joined) * len(x) / np.sum(joined)
    return st.chisquare(joined_seen, joined).pvalue


@pytest.mark.parametrize(
    "rate", [0.01, 0.7, 3.0, 9.99, 10.0, 30.0, 63.0, 65.0, 200.0, 12345.0]
)
def test_poisson(rate):
    x = draws(lambda t: torch.poisson(t.fill_(rate)))
    assert (x == np.floor(x)).all() and x.min() >= 0
    assert chi_square(x, st.poisson(rate)) > P
    assert abs(x.mean() - rate) < 4 * np.sqrt(rate / COUNT)
    deviation = np.sqrt((2 * rate**2 + rate) / COUNT)
    assert abs(x.var() - rate) < 4 * deviation
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4 / np.sqrt(COUNT)


def test_poisson_of_large_rates():
    """Where sums of rates and log-factorials would cancel."""
    for rate in (1e9, 1e14):
        x = draws(lambda t: torch.poisson(t.fill_(rate)))
        z = (x - rate) / np.sqrt(rate)
        assert abs(z.mean()) < 4 / np.sqrt(COUNT)
        assert st.kstest(z, st.norm().cdf).pvalue > P


def test_poisson_at_the_edges():
    assert torch.poisson(torch.zeros(100)).sum().item() == 0
    torch.manual_seed(1)
    narrow = torch.poisson(torch.full((1000,), 20.0, dtype=torch.float16))
    assert narrow.dtype is torch.float16 and 15 < narrow.float().mean().item() < 25
    assert torch.poisson(torch.empty(0, 3)).shape == (0, 3)
    for rate in (-1.0, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="invalid Poisson rate"):
            torch.poisson(torch.tensor([1.0, rate])).tolist()
    with pytest.raises(RuntimeError, match="poisson"):
        torch.poisson(torch.tensor([1, 2]))


def test_integers_like():
    like = torch.empty(2, 3, dtype=torch.float64)
    for drawn in (torch.randint_like(like, 2), torch.randint_like(like, high=2)):
        assert drawn.shape == (2, 3) and drawn.dtype is torch.float64
        assert set(drawn.flatten().tolist()) <= {0.0, 1.0}
    assert set(torch.randint_like(like, 4, 5).flatten().tolist()) == {4.0}


def test_binomial():
    x = draws(lambda t: torch.binomial(t.fill_(40.0), torch.full_like(t, 0.3)))
    assert chi_square(x, st.binom(40, 0.3)) > P
    with pytest.raises(NotImplementedError, match="binomial.*default generator"):
        torch.binomial(torch.ones(2), torch.ones(2), torch.Generator())


def test_normal_of_tensors():
    mean = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)
    std = torch.ones(2, requires_grad=True)
    drawn = torch.normal(mean, std)
    assert drawn.shape == (3, 2) and drawn.dtype is torch.float64
    # Of more than float32's digits.
    assert (drawn != drawn.float().double()).any().item()
    drawn.sum().backward()
    assert not mean.grad.any().item() and not std.grad.any().item()
    assert torch.normal(0, 1, (2, 3), dtype=torch.float64).dtype is torch.float64
    with pytest.raises(RuntimeError, match="std >= 0.0, but found std -1"):
        torch.normal(mean, -1.0)
    with pytest.raises(TypeError, match="needs a size"):
        torch.normal(0.0, 1.0)


def test_geometric():
    for p in (0.05, 0.4, 0.9):
        for dtype in (torch.float64, torch.float32, torch.int64):
            x = draws(lambda t: t.geometric_(p), dtype=dtype)
            assert chi_square(x, st.geom(p), low=1) > P


def test_integers():
    x = draws(lambda t: torch.randint(-5, 12, (len(t),)))
    assert st.chisquare(np.bincount((x + 5).astype(int), minlength=17)).pvalue > P
    x = draws(lambda t: t.random_(3, 8), dtype=torch.uint8)
    assert st.chisquare(np.bincount((x - 3).astype(int), minlength=5)).pvalue > P
    pairs = x[:-1] * 5 + x[1:] - 18
    assert st.chisquare(np.bincount(pairs.astype(int)[::2], minlength=25)).pvalue > P
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32):
        full = torch.empty(4000, dtype=dtype).random_()
        info = None if dtype is torch.bool else torch.iinfo(dtype)
        top = 1 if info is None else info.max
        assert full.max().item() > top * 0.99 and full.min().item() >= 0
    assert torch.empty(4, dtype=torch.int64).random_().max().item() > 2**32


def test_permutations():
    torch.manual_seed(3)
    counts = np.zeros((5, 5))
    for _ in range(4000):
        counts[np.arange(5), torch.randperm(5).numpy()] += 1
    assert st.chisquare(counts.ravel()).pvalue > P
    assert sorted(torch.randperm(1000).tolist()) == list(range(1000))


def test_bernoulli():
    for p in (0.001, 0.3, 0.5, 0.999):
        for function in (
            lambda t: torch.bernoulli(t.fill_(p)),
            lambda t: t.bernoulli_(p),
            lambda t: torch.bernoulli(t, p),
        ):
            x = draws(function)
            assert set(np.unique(x)) <= {0.0, 1.0}
            assert st.binomtest(int(x.sum()), COUNT, p).pvalue > P
    for edge in (0.0, 1.0):
        assert (draws(lambda t: torch.bernoulli(t.fill_(edge))) == edge).all()
        assert (draws(lambda t: t.bernoulli_(edge)) == edge).all()
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            torch.bernoulli(torch.tensor([0.5, wrong])).tolist()


def test_dropout():
    torch.manual_seed(5)
    y = torch.nn.functional.dropout(torch.ones(COUNT), 0.3).numpy()
    kept = y > 0
    assert st.binomtest(int(kept.sum()), COUNT, 0.7).pvalue > P
    np.testing.assert_allclose(y[kept], 1 / 0.7, rtol=1e-6)


def test_multinomial_with_replacement():
    weights = torch.tensor([0.0, 1.0, 2.0, 0.0, 5.0, 0.0])
    torch.manual_seed(11)
    x = torch.multinomial(weights, COUNT, replacement=True).numpy()
    counts = np.bincount(x, minlength=6)
    assert counts[[0, 3, 5]].sum() == 0
    chosen = counts[[1, 2, 4]]
    assert st.chisquare(chosen, np.array([1, 2, 5]) / 8 * COUNT).pvalue > P
    rows = torch.multinomial(torch.tensor([[1.0, 0], [0, 3]]), 50, True)
    assert rows.tolist() == [[0] * 50, [1] * 50]


def test_multinomial_without_replacement():
    """First and second draws have the right joint law."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    torch.manual_seed(12)
    table = torch.tensor(p, dtype=torch.float64).expand(50_000, 4)
    x = torch.multinomial(table, 2).numpy()
    assert (x[:, 0] != x[:, 1]).all()
    expected = np.array(
        [p[i] * p[j] / (1 - p[i]) if i != j else 0 for i in range(4) for j in range(4)]
    )
    counts = np.bincount(x[:, 0] * 4 + x[:, 1], minlength=16)
    possible = expected > 0
    assert st.chisquare(counts[possible], expected[possible] * 50_000).pvalue > P
    every = torch.multinomial(torch.tensor([0.5, 0.0, 0.5]), 2)
    assert sorted(every.tolist()) == [0, 2]


@pytest.mark.parametrize(
    "weights,count,replacement,text",
    [
        ([1.0, -1], 1, True, "element < 0"),
        ([1.0, float("nan")], 1, True, "`nan`"),
        ([1.0, float("inf")], 1, False, "`inf`"),
        ([[1.0, 1], [0, 0]], 1, True, "above zero"),
        ([1.0, 0, 0], 2, False, "above zero"),
        ([1.0, 2], 3, False, "n_sample > prob_dist"),
        ([1.0, 2], 0, False, "n_sample <= 0"),
        ([[[1.0]]], 1, False, "1 or 2 dim"),
        ([1, 2], 1, False, "floating point"),
    ],
)
def test_multinomial_mistakes(weights, count, replacement, text):
    with pytest.raises(RuntimeError, match=text):
        torch.multinomial(torch.tensor(weights), count, replacement)
