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


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3, 3), (1, 6)])
def test_orthogonal(shape):
    for dtype in (holdfast.float32, holdfast.float64):
        x = nn.Parameter(holdfast.empty(shape, dtype=dtype))
        assert nn.init.orthogonal_(x, gain=2) is x and x.is_leaf
        flat = x.detach().reshape((shape[0], -1))
        if flat.shape[0] > flat.shape[1]:
            flat = flat.mT
        expected = 4 * holdfast.eye(flat.shape[0], dtype=dtype)
        assert holdfast.allclose(flat @ flat.mT, expected, atol=1e-5)


def test_orthogonal_is_uniform():
    """Rotations of the plane by any angle, and reflections, come as often."""
    drawn = [nn.init.orthogonal_(holdfast.empty(2, 2)) for _ in range(400)]
    drawn = holdfast.stack(drawn)
    # Every element has mean 0 and variance 1/2; a half are reflections.
    assert drawn.mean(0).abs().max().item() < 0.15
    assert abs((drawn**2).mean(0)[0, 0].item() - 0.5) < 0.1
    turned = (holdfast.linalg.det(drawn) > 0).float().mean().item()
    assert 0.4 < turned < 0.6


def test_orthogonal_refuses():
    with pytest.raises(ValueError, match="2 or more dimensions"):
        nn.init.orthogonal_(holdfast.empty(3))
    assert nn.init.orthogonal_(holdfast.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("shape", [(4, 4, 3), (4, 2, 3, 3), (2, 3, 3, 5, 1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups):
    peer = pytest.importorskip("torch")
    x = nn.init.dirac_(holdfast.full(shape, 7.0), groups)
    assert x.tolist() == peer.nn.init.dirac_(peer.empty(shape), groups).tolist()


def test_dirac_refuses():
    with pytest.raises(ValueError, match="3, 4, or 5"):
        nn.init.dirac_(holdfast.empty(3, 3))
    with pytest.raises(ValueError, match="divisible by groups. Got 3"):
        nn.init.dirac_(holdfast.empty(3, 3, 3), 2)


def test_sparse():
    x = nn.init.sparse_(holdfast.empty(50, 40), 0.31, std=2.0)
    assert ((x == 0).sum(0) == 16).all().item()  # ceil(15.5) in each column
    kept = x[x != 0]
    _, deviation = moments(kept)
    assert abs(deviation / 2 - 1) < 0.1
    rows = (x == 0).sum(1)
    assert rows.min().item() < rows.max().item()  # not the same ones everywhere
    assert nn.init.sparse_(holdfast.empty(3, 2), 1.0).abs().sum().item() == 0
    with pytest.raises(ValueError, match="2 dimensions"):
        nn.init.sparse_(holdfast.empty(3), 0.5)
    with pytest.raises(ValueError, match="sparsity must be"):
        nn.init.sparse_(holdfast.empty(3, 3), 1.5)


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


NORMS = [
    lambda nn: (nn.BatchNorm1d, (3,)),
    lambda nn: (nn.BatchNorm2d, (3,)),
    lambda nn: (nn.InstanceNorm2d, (3, 1e-5, 0.1, True)),
    lambda nn: (nn.LayerNorm, (3,)),
    lambda nn: (nn.RMSNorm, (3,)),
    lambda nn: (nn.GroupNorm, (1, 3)),
]


@pytest.mark.parametrize("norm", NORMS)
def test_a_programs_norm_starts_as_it_says(norm):
    base, arguments = norm(nn)

    class Gated(base):
        def reset_parameters(self):
            super().reset_parameters()
            nn.init.constant_(self.weight, 0.5)

    assert Gated(*arguments).weight.tolist() == [0.5] * 3
    plain = base(*arguments)
    assert plain.weight.tolist() == [1.0] * 3
    assert all(not b.any().item() for n, b in plain.named_parameters() if n == "bias")
