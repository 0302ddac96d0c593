# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random operators, whose numbers OpInfo's suites do not compare: their moments, and
what follows from what was drawn."""

import math

import pytest
import torch

F = torch.nn.functional
COUNT = 40_000


def drawn(device, name, *args):
    return getattr(torch.empty(COUNT, device=device), name)(*args).cpu()


# Operator, arguments, mean and variance.
MOMENTS = [
    ("uniform_", (2.0, 5.0), 3.5, 0.75),
    ("normal_", (1.0, 2.0), 1.0, 4.0),
    ("exponential_", (2.0,), 0.5, 0.25),
    ("geometric_", (0.25,), 4.0, 12.0),
    ("bernoulli_", (0.3,), 0.3, 0.21),
    ("log_normal_", (0.0, 0.5), math.exp(0.125), 0.3646959),
]


@pytest.mark.parametrize("name, args, mean, variance", MOMENTS)
def test_moments(device, name, args, mean, variance):
    torch.manual_seed(0)
    x = drawn(device, name, *args).double()
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / COUNT)
    assert x.var().item() == pytest.approx(variance, rel=0.15)


def test_the_median_of_a_cauchy_distribution(device):
    torch.manual_seed(0)
    assert drawn(device, "cauchy_", 3.0, 2.0).median().item() == pytest.approx(
        3, abs=0.1
    )


def test_multinomial_follows_its_weights(device):
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 0.0, 3.0], device=device)
    found = torch.multinomial(weights, COUNT, replacement=True)
    counts = torch.bincount(found, minlength=3).tolist()
    assert counts[1] == 0
    assert counts[2] / COUNT == pytest.approx(0.75, abs=0.02)
    assert sorted(torch.multinomial(weights, 2).tolist()) == [0, 2]


def test_dropout_and_its_gradient(device):
    torch.manual_seed(0)
    x = torch.ones(COUNT, device=device, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    kept = (y != 0).float().mean().item()
    assert kept == pytest.approx(0.75, abs=0.02)
    assert y.cpu().unique().tolist() == pytest.approx([0, 4 / 3])
    assert torch.equal(x.grad, y.detach())


def test_rrelu_and_its_gradient(device):
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, COUNT, device=device).requires_grad_()
    y = F.rrelu(x, 0.1, 0.3, training=True)
    y.sum().backward()
    slopes = (y / x).detach()[x.detach() < 0]
    assert 0.1 <= slopes.min().item() < 0.11 and 0.29 < slopes.max().item() <= 0.3001
    torch.testing.assert_close((x.grad * x).detach(), y.detach())


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_max_pool_of_given_samples(device, dims):
    torch.manual_seed(0)
    pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[dims - 2]
    x, samples = torch.randn(2, 3, *(7,) * dims), torch.rand(2, 3, dims)
    results = []
    for where in (device, "cpu"):
        leaf = x.to(where).requires_grad_()
        y, indices = pool(
            leaf,
            2,
            output_size=4,
            return_indices=True,
            _random_samples=samples.to(where),
        )
        y.square().sum().backward()
        results.append([z.detach().cpu() for z in (y, indices, leaf.grad)])
    for ours, theirs in zip(*results):
        assert torch.equal(ours, theirs)


def test_a_seed_repeats(device):
    torch.manual_seed(3)
    first = torch.randn(5, device=device)
    torch.manual_seed(3)
    assert torch.equal(first, torch.randn(5, device=device))
