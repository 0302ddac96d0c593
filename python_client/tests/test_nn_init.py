# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Initial values: bounds and moments, and what layers start from."""

import math

import pytest

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


@pytest.fixture(autouse=True)
def seeded():
    holdfast.manual_seed(11)


def moments(tensor):
    mean = tensor.mean().item()
    return mean, math.sqrt(((tensor - mean) ** 2).mean().item())


def test_uniform_and_normal():
    x = nn.init.uniform_(holdfast.empty(20000), -2, 3)
    assert -2 <= x.min().item() and x.max().item() < 3
    assert abs(x.mean().item() - 0.5) < 0.05
    mean, deviation = moments(nn.init.normal_(holdfast.empty(20000), 1, 0.5))
    assert abs(mean - 1) < 0.02 and abs(deviation - 0.5) < 0.02


def test_constants():
    x = holdfast.empty(2, 3)
    assert nn.init.constant_(x, 2.5) is x or x.tolist() == [[2.5] * 3] * 2
    assert nn.init.ones_(x).sum().item() == 6
    assert nn.init.zeros_(x).sum().item() == 0
    assert nn.init.eye_(x).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="2 dimensions"):
        nn.init.eye_(holdfast.empty(3))


@pytest.mark.parametrize(
    "fill,deviation",
    [
        (lambda w: nn.init.xavier_uniform_(w, 2.0), 2 * math.sqrt(2 / 700)),
        (nn.init.xavier_normal_, math.sqrt(2 / 700)),
        (
            lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu"),
            math.sqrt(2 / 300),
        ),
        (
            lambda w: nn.init.kaiming_normal_(w, mode="fan_out"),
            math.sqrt(2 / 400),
        ),
    ],
)
def test_scaled_by_fan(fill, deviation):
    mean, actual = moments(fill(holdfast.empty(400, 300)))
    assert abs(mean) < deviation / 50
    assert abs(actual / deviation - 1) < 0.02


def test_truncated_normal():
    x = nn.init.trunc_normal_(holdfast.empty(50000), 0.0, 1.0, -1.0, 2.0)
    assert x.min().item() >= -1 and x.max().item() <= 2
    # The truncated distribution's own moments.
    mean, deviation = moments(x)
    assert abs(mean - 0.2296) < 0.02 and abs(deviation - 0.7206) < 0.02


def test_parameters_stay_leaves():
    weight = nn.Parameter(holdfast.empty(4, 4))
    nn.init.kaiming_uniform_(weight)
    assert weight.is_leaf and weight.requires_grad and weight.grad_fn is None


def test_gain():
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    assert nn.init.calculate_gain("leaky_relu", 1) == 1
    assert nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("step")
    with pytest.raises(ValueError, match="Mode"):
        nn.init.kaiming_normal_(holdfast.empty(2, 2), mode="fan_all")
    with pytest.raises(ValueError, match="fewer than 2"):
        nn.init.xavier_normal_(holdfast.empty(2))


def test_layers_start_as_pytorchs_do():
    linear = nn.Linear(100, 200)
    bound = 1 / math.sqrt(100)
    for tensor in (linear.weight, linear.bias):
        assert tensor.abs().max().item() <= bound
        _, deviation = moments(tensor.detach())
        assert abs(deviation / (bound / math.sqrt(3)) - 1) < 0.15
    conv = nn.Conv2d(8, 64, 5, groups=2)
    assert conv.weight.abs().max().item() <= 1 / math.sqrt(4 * 25)
    _, deviation = moments(nn.Embedding(200, 50).weight.detach())
    assert abs(deviation - 1) < 0.05


def test_one_seed_gives_the_same_weights():
    holdfast.manual_seed(5)
    first = nn.Linear(3, 3).weight.tolist()
    second = nn.Linear(3, 3).weight.tolist()
    holdfast.manual_seed(5)
    assert nn.Linear(3, 3).weight.tolist() == first != second
