# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A program that replaces a function (by NumPy's random numbers, by one that counts)
sees the calls that PyTorch makes of it."""

import pytest

from torch_peer import torch as peer


def normal(t):
    return t.distributions.Normal(t.zeros(3), t.ones(3))


# (what is replaced, what a program calls)
CASES = [
    ("normal", lambda t: normal(t).sample()),
    ("Tensor.normal_", lambda t: normal(t).rsample()),
    ("Tensor.normal_", lambda t: t.distributions.LogNormal(0.0, t.ones(2)).rsample()),
    (
        "Tensor.normal_",
        lambda t: t.distributions.MultivariateNormal(t.zeros(2), t.eye(2)).sample(),
    ),
    ("rand", lambda t: t.distributions.Uniform(0.0, 1.0).sample()),
    ("rand", lambda t: t.distributions.Gumbel(0.0, 1.0).sample()),
    ("rand", lambda t: t.distributions.RelaxedBernoulli(1.0, t.ones(2) / 2).rsample()),
    ("rand", lambda t: t.distributions.ContinuousBernoulli(t.ones(2) / 2).rsample()),
    ("bernoulli", lambda t: t.distributions.Bernoulli(t.ones(2) / 2).sample()),
    ("multinomial", lambda t: t.distributions.Categorical(t.ones(3)).sample()),
    ("multinomial", lambda t: t.distributions.OneHotCategorical(t.ones(3)).sample()),
    ("poisson", lambda t: t.distributions.Poisson(t.ones(3)).sample()),
    ("poisson", lambda t: t.distributions.NegativeBinomial(3, t.ones(2) / 2).sample()),
    ("binomial", lambda t: t.distributions.Binomial(4, t.ones(2) / 2).sample()),
    ("_standard_gamma", lambda t: t.distributions.Gamma(t.ones(2), 1.0).sample()),
    ("_standard_gamma", lambda t: t.distributions.StudentT(t.ones(2)).sample()),
    ("_sample_dirichlet", lambda t: t.distributions.Dirichlet(t.ones(2)).sample()),
    ("_sample_dirichlet", lambda t: t.distributions.Beta(t.ones(2), 1.0).sample()),
    ("Tensor.exponential_", lambda t: t.distributions.Exponential(t.ones(2)).sample()),
    ("Tensor.exponential_", lambda t: t.nn.functional.gumbel_softmax(t.ones(3))),
    ("Tensor.cauchy_", lambda t: t.distributions.Cauchy(0.0, t.ones(2)).sample()),
    ("Tensor.uniform_", lambda t: t.distributions.Laplace(0.0, t.ones(2)).sample()),
    ("Tensor.uniform_", lambda t: t.distributions.Geometric(t.ones(2) / 2).sample()),
    ("Tensor.uniform_", lambda t: t.nn.init.trunc_normal_(t.ones(2))),
    ("Tensor.uniform_", lambda t: t.nn.Linear(2, 2)),
    ("Tensor.normal_", lambda t: t.nn.Embedding(2, 2)),
    ("Tensor.zero_", lambda t: t.nn.init.zeros_(t.ones(2))),
    ("Tensor.fill_", lambda t: t.nn.init.ones_(t.ones(2))),
    ("nn.init.ones_", lambda t: t.nn.BatchNorm2d(2)),
    ("nn.init.zeros_", lambda t: t.nn.LayerNorm(2)),
    ("nn.init.uniform_", lambda t: t.nn.LSTM(2, 2)),
    ("nn.init.kaiming_uniform_", lambda t: t.nn.Conv2d(1, 1, 1)),
    ("nn.functional.dropout", lambda t: t.nn.Dropout()(t.ones(2))),
    ("nn.functional.relu", lambda t: t.nn.ReLU()(t.ones(2))),
    ("nn.functional.cross_entropy", lambda t: entropy(t)),
    ("randperm", lambda t: list(t.utils.data.RandomSampler(range(4)))),
    ("stack", lambda t: t.utils.data.default_collate([t.ones(2), t.ones(2)])),
    ("Tensor.__add__", lambda t: t.ones(2) + 1),
    ("Tensor.__radd__", lambda t: 1 + t.ones(2)),
    ("Tensor.__matmul__", lambda t: t.ones(2) @ t.ones(2)),
    ("Tensor.__getitem__", lambda t: t.ones(2)[0]),
    ("Tensor.backward", lambda t: t.ones(2, requires_grad=True).sum().backward()),
]


def entropy(t):
    return t.nn.CrossEntropyLoss()(t.ones(1, 2), t.tensor([1]))


def calls_of(t, monkeypatch, place, call):
    """How often `call` calls the function at `place`, replaced by one that counts."""
    *path, name = place.split(".")
    owner = t
    for part in path:
        owner = getattr(owner, part)
    before, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(name)
        return before(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counted)
        call(t)
    return len(calls)


@pytest.mark.parametrize("place, call", CASES, ids=[place for place, _ in CASES])
def test_replaced(torch, monkeypatch, place, call):
    for t in (torch, peer):
        assert calls_of(t, monkeypatch, place, call), f"{t.__name__}: {place}"


def test_functional_calls_ops_directly(torch, monkeypatch):
    """In PyTorch some of its functions look up those of torch, dropout does not."""
    for place, call, seen_by_pytorch in (
        ("dropout", lambda t: t.nn.functional.dropout(t.ones(2)), False),
        ("relu", lambda t: t.nn.functional.relu(t.ones(2)), True),
        ("layer_norm", lambda t: t.nn.functional.layer_norm(t.ones(2), (2,)), True),
    ):
        assert not calls_of(torch, monkeypatch, place, call)
        assert bool(calls_of(peer, monkeypatch, place, call)) == seen_by_pytorch
