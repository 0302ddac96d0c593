# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of tensors made of nothing: constants and random numbers."""


import numpy as np
from op_cases import case


# ---- creation

case("empty", lambda hf: hf.empty(2, 3).fill_(7) == 7, lambda: np.ones((2, 3), bool))
case("full", lambda hf: hf.full((2, 3), 7), lambda: np.full((2, 3), 7))
case("full", lambda hf: hf.full((2,), 1.5), lambda: np.full(2, 1.5), label=" float")
case("arange", lambda hf: hf.arange(5), lambda: np.arange(5))
case(
    "arange", lambda hf: hf.arange(1, 2, 0.3), lambda: np.arange(1, 2, 0.3), label=" f"
)
case("eye", lambda hf: hf.eye(3, 4), lambda: np.eye(3, 4))

# ---- random: a property in the place of values (see test_op_cases.py)


def within(low, high, integer=False):
    def check(x):
        assert x.min() >= low and x.max() < high, (x.min(), x.max())
        if not integer:
            assert abs(x.mean() - (low + high) / 2) < 0.05 * (high - low)

    return check


def normal(mean, std):
    def check(x):
        assert abs(x.mean() - mean) < 0.1 * std and abs(x.std() - std) < 0.1 * std

    return check


def permutation(x):
    assert sorted(x.tolist()) == list(range(len(x)))


def drop(x):
    kept = x != 0
    assert np.allclose(x[kept], 1 / 0.7) and abs(kept.mean() - 0.7) < 0.05


def coin(x):
    assert set(np.unique(x)) <= {0.0, 1.0} and abs(x.mean() - 0.3) < 0.05


N = 4000
for op, ours, check in [
    ("rand", lambda hf: hf.rand(N), within(0, 1)),
    ("randn", lambda hf: hf.randn(N), normal(0, 1)),
    ("randint", lambda hf: hf.randint(3, 9, (N,)), within(3, 9, True)),
    ("randperm", lambda hf: hf.randperm(100), permutation),
    ("uniform", lambda hf: hf.empty(N).uniform_(-3, 1), within(-3, 1)),
    ("normal", lambda hf: hf.empty(N).normal_(2, 3), normal(2, 3)),
    ("bernoulli", lambda hf: hf.bernoulli(hf.full((N,), 0.3)), coin),
    ("poisson", lambda hf: hf.poisson(hf.full((N,), 20.0)), normal(20, 20**0.5)),
    ("dropout", lambda hf: hf.nn.functional.dropout(hf.ones(N), 0.3), drop),
]:
    case(op, ours, check, grad=(), random=True)


def state_after_seven(hf):
    hf.manual_seed(258)
    hf.rand(7)
    return hf.get_rng_state()


case(
    "random_state",
    state_after_seven,
    lambda: np.array([2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], "uint8"),
    grad=(),
)
