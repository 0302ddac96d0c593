# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Densities, moments and divergences against PyTorch; shapes, checks, errors."""

import numpy as np
import pytest

import holdfast
from distribution_family_cases import CASES, NAMES, PAIRS
from holdfast import distributions as D
from torch_peer import assert_close, assert_same_results, leaves, torch

pytestmark = pytest.mark.usefixtures("torch")
each_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def tolerance(case):
    # PyTorch's Bessel functions are float32's; SciPy's check ours.
    loose = case.name == "VonMises"
    return {"rtol": 2e-5, "atol": 1e-6} if loose else CLOSE


def made(case):
    """(ours, theirs, our leaves, their leaves)."""
    ours, theirs = leaves(case.arrays)
    return (
        case.make(D, *ours),
        case.make(torch.distributions, *theirs),
        ours,
        theirs,
    )


@each_case
def test_log_prob_and_its_gradients(case):
    p, q, ours, theirs = made(case)
    assert tuple(p.batch_shape) == tuple(q.batch_shape)
    assert tuple(p.event_shape) == tuple(q.event_shape)
    a = p.log_prob(holdfast.tensor(case.value))
    b = q.log_prob(torch.tensor(case.value))
    assert_same_results(a, b, ours, theirs, **tolerance(case))


# Later releases have these; test_distribution_families.py has ours.
NEWER = {"Gamma.cdf", "Chi2.cdf"}
# Its formula in PyTorch is wrong; test_distribution_families.py has ours.
DIFFERENT = {"Kumaraswamy.mode"}


@each_case
@pytest.mark.parametrize("name", ["mean", "variance", "stddev", "mode", "entropy"])
def test_moments(case, name):
    if f"{case.name}.{name}" in DIFFERENT:
        return
    p, q, _, _ = made(case)
    try:
        expected = getattr(q, name)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            getattr(p, name)
        return
    if callable(expected):
        try:
            expected = expected()
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                getattr(p, name)()
            return
        # PyTorch has log(n!) in float32.
        close = {"rtol": 1e-6} if case.name == "Multinomial" else CLOSE
        assert_close(getattr(p, name)(), expected, **close)
        return
    assert_close(getattr(p, name), expected, **tolerance(case))


@each_case
@pytest.mark.parametrize("name", ["cdf", "icdf"])
def test_distribution_functions(case, name):
    p, q, _, _ = made(case)
    # Probabilities in place of the value's numbers.
    points = case.value if name == "cdf" else 1 / (1 + np.exp(-case.value))
    try:
        expected = getattr(q, name)(torch.tensor(points))
    except (NotImplementedError, AttributeError):
        if f"{case.name}.{name}" in NEWER:
            return
        with pytest.raises((NotImplementedError, AttributeError)):
            getattr(p, name)(holdfast.tensor(points))
        return
    assert_close(getattr(p, name)(holdfast.tensor(points)), expected, **CLOSE)


@each_case
def test_expand(case):
    p, q, _, _ = made(case)
    shape = (2, 3) + tuple(p.batch_shape)
    wide, theirs = p.expand(shape), q.expand(shape)
    assert type(wide) is type(p)
    assert tuple(wide.batch_shape) == tuple(theirs.batch_shape) == shape
    assert tuple(wide.event_shape) == tuple(theirs.event_shape)
    value = np.broadcast_to(case.value[0], shape + tuple(p.event_shape))
    assert_close(
        wide.log_prob(holdfast.tensor(value)),
        theirs.log_prob(torch.tensor(value.copy())),
        **tolerance(case),
    )
    sample = wide.sample((2,))
    assert tuple(sample.shape) == tuple(theirs.sample((2,)).shape)


@each_case
def test_samples_and_their_checks(case):
    p, q, _, _ = made(case)
    assert p.has_rsample == q.has_rsample
    assert p.has_enumerate_support == q.has_enumerate_support
    for shape in ((), (5,), (2, 3), (0,)):
        sample = p.sample(shape)
        assert tuple(sample.shape) == shape + tuple(p.batch_shape + p.event_shape)
        assert str(sample.dtype).split(".")[-1] == str(q.sample().dtype).split(".")[-1]
        assert not sample.requires_grad
        assert p.support.check(sample).all().item()
    assert p.support.event_dim == q.support.event_dim
    # A value outside the support is an error, NaN everywhere.
    bad = np.full(case.value.shape, np.nan)
    with pytest.raises(ValueError, match="within the support"):
        p.log_prob(holdfast.tensor(bad))
    if case.name not in ("Gamma", "Chi2"):  # these take numbers, as PyTorch's
        with pytest.raises(ValueError, match="must be a Tensor"):
            p.log_prob(1.0)
    if np.prod(p.batch_shape + p.event_shape) > 1:
        with pytest.raises(ValueError, match="must match|not broadcastable"):
            p.log_prob(holdfast.zeros(17, dtype=holdfast.float64))


@each_case
def test_enumerate_support(case):
    p, q, _, _ = made(case)
    if not q.has_enumerate_support:
        with pytest.raises(NotImplementedError):
            p.enumerate_support()
        return
    for expand in (True, False):
        ours, theirs = p.enumerate_support(expand), q.enumerate_support(expand)
        assert_close(ours, theirs)


# PyTorch's is wrong for batches of Wisharts; test_distribution_families.py has ours.
SAME = [c for c in CASES if not c.name.startswith(("Mixture", "StudentT", "Wishart"))]


@pytest.mark.parametrize("case", SAME, ids=lambda c: c.name)
def test_divergence_within_a_family(case):
    p, q, ours, theirs = made(case)
    moved = [array * 1.1 for array in case.arrays]
    if "PROBS" in case.name.upper() and not case.name.startswith("Cat"):
        moved = [array**1.3 for array in case.arrays]
    if case.name == "Uniform":  # a wider one
        moved = [case.arrays[0] - 0.1, case.arrays[1] + 0.3]
    ours_moved, theirs_moved = leaves(moved)
    p2 = case.make(D, *ours_moved)
    q2 = case.make(torch.distributions, *theirs_moved)
    try:
        expected = torch.distributions.kl_divergence(q, q2)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            D.kl_divergence(p, p2)
        return
    result = D.kl_divergence(p, p2)
    assert_same_results(
        result, expected, ours + ours_moved, theirs + theirs_moved, **CLOSE
    )
    assert (result.detach() >= -1e-12).all().item()
    assert abs(D.kl_divergence(p, p).sum().item()) < 1e-8


@pytest.mark.parametrize("name", PAIRS)
def test_divergence_of_pairs(name):
    p, p2 = PAIRS[name](D, lambda x: holdfast.tensor(x, dtype=holdfast.float64))
    q, q2 = PAIRS[name](
        torch.distributions, lambda x: torch.tensor(x, dtype=torch.float64)
    )
    expected = torch.distributions.kl_divergence(q, q2)
    assert_close(D.kl_divergence(p, p2), expected, **CLOSE)


def test_divergence_dispatch():
    class Own(D.Normal):
        pass

    p, q = Own(0.0, 1.0), D.Normal(1.0, 1.0)
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)

    @D.register_kl(Own, D.Normal)
    def own(p, q):
        return holdfast.tensor(7.0)

    assert D.kl_divergence(p, q).item() == 7
    assert D.kl_divergence(q, p).item() == pytest.approx(0.5)
    with pytest.raises(NotImplementedError, match="p type Normal and q type Cauchy"):
        D.kl_divergence(q, D.Cauchy(1.0, 1.0))
    with pytest.raises(NotImplementedError, match="Got Normal and Poisson"):
        D.kl_divergence(q, D.Poisson(1.0))
    with pytest.raises(TypeError, match="subclass of Distribution"):
        D.register_kl(int, D.Normal)

    @D.register_kl(D.Normal, Own)
    def other(p, q):
        return holdfast.tensor(8.0)

    with pytest.warns(RuntimeWarning, match="Ambiguous"):
        assert D.kl_divergence(p, Own(0.0, 1.0)).item() == 7


@pytest.mark.parametrize(
    "make,match",
    [
        (lambda: D.Normal(0.0, -1.0), "Expected parameter scale"),
        (lambda: D.Normal(float("nan"), 1.0), "Expected parameter loc"),
        (lambda: D.Normal("0", 1.0), "numbers.Number"),
        (lambda: D.Bernoulli(1.5), "Expected parameter probs"),
        (lambda: D.Bernoulli(), "not both"),
        (lambda: D.Bernoulli(0.5, 0.5), "not both"),
        (lambda: D.Categorical(holdfast.tensor([-1.0, 2.0])), "parameter probs"),
        (lambda: D.Categorical(holdfast.tensor(0.5)), "at least one-dim"),
        (lambda: D.Categorical(holdfast.zeros(2, 0)), "no events"),
        (lambda: D.Categorical(logits=holdfast.tensor([0.0, float("nan")])), "logits"),
        (lambda: D.Uniform(1.0, 1.0), "low >= high"),
        (lambda: D.Exponential(0.0), "Expected parameter rate"),
        (lambda: D.Gamma(1.0, -1.0), "Expected parameter rate"),
        (lambda: D.Chi2(0.0), "Expected parameter df"),
        (lambda: D.Beta(0.0, 1.0), "Expected parameter concentration1"),
        (lambda: D.Dirichlet(holdfast.tensor([1.0, 0.0])), "concentration"),
        (lambda: D.Dirichlet(holdfast.tensor(1.0)), "at least one-dim"),
        (lambda: D.Geometric(0.0), "to be positive"),
        (lambda: D.Binomial(-1, 0.5), "total_count"),
        (lambda: D.Binomial(2.5, 0.5), "total_count"),
        (lambda: D.Multinomial(-1, holdfast.ones(2)), "total_count"),
        (lambda: D.StudentT(-1.0), "Expected parameter df"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
        (
            lambda: D.MultivariateNormal(holdfast.zeros(2), -holdfast.eye(2)),
            "covariance_matrix",
        ),
        (
            lambda: D.MultivariateNormal(holdfast.zeros(2), holdfast.eye(3)),
            r"\[\.\.\., 2, 2\]",
        ),
        (lambda: D.MultivariateNormal(holdfast.zeros(2)), "Exactly one"),
        (
            lambda: D.MultivariateNormal(
                holdfast.zeros(2), scale_tril=holdfast.ones(2, 2)
            ),
            "scale_tril",
        ),
        (
            lambda: D.MultivariateNormal(
                holdfast.zeros(2), holdfast.full((2, 2), float("nan"))
            ),
            "covariance_matrix",
        ),
        (
            lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)),
            "Mixture",
        ),
        (
            lambda: D.MixtureSameFamily(
                D.Categorical(holdfast.ones(3)), D.Normal(holdfast.zeros(2), 1.0)
            ),
            "does not equal",
        ),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3), "transforms"),
    ],
)
def test_bad_parameters(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_checks_can_be_left_out():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    p = D.Exponential(1.0, validate_args=False)
    assert p.log_prob(holdfast.tensor(-1.0)).item() == 1
    # Weights that nobody checked give some index, and harm nobody.
    bad = holdfast.tensor([float("nan"), 1.0])
    index = D.Categorical(bad, validate_args=False).sample((9,))
    assert ((index >= 0) & (index < 2)).all().item()
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -2.0).scale.item() == -2
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="True or False"):
        D.Distribution.set_default_validate_args(3)


def test_numbers_and_types():
    p = D.Normal(0, 1)
    assert p.batch_shape == () and p.sample().dtype is holdfast.float32
    assert D.Normal(holdfast.zeros(2, dtype=holdfast.float64), 1).scale.dtype is (
        holdfast.float64
    )
    assert p.log_prob(holdfast.zeros(3)).shape == (3,)
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert "Size([2])" in repr(D.Poisson(holdfast.ones(2)))
    assert p.perplexity().item() == pytest.approx(np.sqrt(2 * np.pi * np.e))
    with pytest.warns(UserWarning, match="sample_n"):
        assert p.sample_n(4).shape == (4,)


def test_subclasses_and_expand():
    class Plain(D.Normal):
        pass

    class Other(D.Normal):
        def __init__(self, scale):
            super().__init__(0.0, scale)

    assert type(Plain(0.0, 1.0).expand((3,))) is Plain
    with pytest.raises(NotImplementedError, match="custom .expand"):
        Other(1.0).expand((3,))
    with pytest.raises(RuntimeError):
        D.Normal(holdfast.zeros(2), 1.0).expand((3,))


def test_entropy_of_an_exponential_family():
    """The general formula against each family's own."""
    for p in (
        D.Normal(holdfast.tensor([1.0, 2.0]), 3.0),
        D.Gamma(holdfast.tensor([1.5, 2.5]), 3.0),
        D.Dirichlet(holdfast.tensor([[1.5, 2.5], [0.5, 4.0]])),
        D.Exponential(holdfast.tensor([1.0, 2.0])),
        D.Bernoulli(holdfast.tensor([0.2, 0.7])),
    ):
        general = D.ExponentialFamily.entropy(p)
        assert general.shape == p.batch_shape
        assert holdfast.allclose(general, p.entropy(), atol=1e-5), p


def test_independent_sums_events():
    p = D.Normal(holdfast.zeros(2, 3), 1.0)
    q = D.Independent(p, 2)
    assert q.batch_shape == () and q.event_shape == (2, 3)
    value = holdfast.randn(4, 2, 3)
    assert holdfast.allclose(q.log_prob(value), p.log_prob(value).sum([1, 2]))
    assert repr(D.Independent(p, 1)).startswith("Independent(Normal(")
    with pytest.raises(NotImplementedError, match="reinterpreted"):
        D.kl_divergence(q, D.Independent(p, 1))


def test_missing_names_fail_by_name():
    for module in (D, D.transforms, D.constraints):
        with pytest.raises(NotImplementedError, match="torch.distributions.*Nowhere"):
            module.Nowhere
    assert not hasattr(D, "Nowhere")
