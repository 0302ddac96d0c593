# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Every layer against PyTorch's: text, state_dict, output, gradients."""

import numpy as np
import pytest

import holdfast
from holdfast import nn
from torch_peer import assert_close, assert_same_results, leaves, to_holdfast, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

# Constructor, and the shapes of its inputs.
LAYERS = [
    (lambda nn: nn.Identity(3, x=1), [(2, 3)]),
    (lambda nn: nn.Linear(3, 5), [(4, 3)]),
    (lambda nn: nn.Linear(3, 5, bias=False), [(2, 4, 3)]),
    (lambda nn: nn.Linear(3, 5), [(3,)]),
    (lambda nn: nn.Conv2d(3, 4, 3), [(2, 3, 7, 6)]),
    (lambda nn: nn.Conv2d(3, 4, 3), [(3, 7, 6)]),
    (lambda nn: nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2), [(2, 4, 9, 8)]),
    (lambda nn: nn.Conv2d(2, 3, 3, padding="same", bias=False), [(2, 2, 5, 5)]),
    (lambda nn: nn.Conv2d(2, 3, 4, padding="same", dilation=2), [(2, 2, 9, 9)]),
    (lambda nn: nn.Conv2d(2, 3, 3, padding="valid"), [(2, 2, 5, 5)]),
    (lambda nn: nn.MaxPool2d(2), [(2, 3, 6, 4)]),
    (lambda nn: nn.MaxPool2d((3, 2), (2, 1), (1, 0), 1, False, True), [(2, 3, 6, 5)]),
    (lambda nn: nn.MaxPool2d(3, 2, dilation=2), [(3, 9, 9)]),
    (lambda nn: nn.AvgPool2d(2), [(2, 3, 6, 4)]),
    (lambda nn: nn.AvgPool2d(3, 2, 1, count_include_pad=False), [(2, 3, 7, 7)]),
    (lambda nn: nn.AvgPool2d(3, 2, 1, divisor_override=2), [(2, 3, 7, 7)]),
    (lambda nn: nn.AvgPool2d(3, 2, 1, ceil_mode=True), [(3, 8, 8)]),
    (lambda nn: nn.AdaptiveAvgPool2d((2, None)), [(2, 3, 6, 4)]),
    (lambda nn: nn.AdaptiveAvgPool2d(1), [(3, 5, 7)]),
    (lambda nn: nn.AdaptiveMaxPool2d(2), [(2, 3, 6, 4)]),
    (lambda nn: nn.Flatten(), [(2, 3, 4)]),
    (lambda nn: nn.Flatten(0, 1), [(2, 3, 4)]),
    (lambda nn: nn.Unflatten(1, (2, -1)), [(3, 6, 2)]),
    (lambda nn: nn.BatchNorm1d(3), [(5, 3)]),
    (lambda nn: nn.BatchNorm1d(3, momentum=None), [(5, 3, 4)]),
    (lambda nn: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), [(4, 3, 2, 5)]),
    (lambda nn: nn.BatchNorm2d(3, affine=False), [(4, 3, 2, 5)]),
    (lambda nn: nn.BatchNorm2d(3, track_running_stats=False), [(4, 3, 2, 5)]),
    (lambda nn: nn.LayerNorm(4), [(2, 3, 4)]),
    (lambda nn: nn.LayerNorm((3, 4), elementwise_affine=False), [(2, 3, 4)]),
    (lambda nn: nn.GroupNorm(2, 4), [(3, 4, 2, 3)]),
    (lambda nn: nn.GroupNorm(4, 4, affine=False), [(3, 4, 5)]),
    (lambda nn: nn.Softmax(dim=1), [(2, 3)]),
    (lambda nn: nn.Softmin(dim=-1), [(2, 3)]),
    (lambda nn: nn.LogSoftmax(dim=0), [(2, 3)]),
    (lambda nn: nn.GLU(dim=1), [(2, 4, 3)]),
    (lambda nn: nn.PReLU(), [(2, 4, 3)]),
    (lambda nn: nn.PReLU(4, 0.1), [(2, 4, 3)]),
]
ACTIVATIONS = [
    lambda nn: nn.ReLU(),
    lambda nn: nn.ReLU6(),
    lambda nn: nn.LeakyReLU(0.2),
    lambda nn: nn.ELU(0.7),
    lambda nn: nn.CELU(0.7),
    lambda nn: nn.SELU(),
    lambda nn: nn.GELU(),
    lambda nn: nn.GELU(approximate="tanh"),
    lambda nn: nn.SiLU(),
    lambda nn: nn.Mish(),
    lambda nn: nn.Hardswish(),
    lambda nn: nn.Hardsigmoid(),
    lambda nn: nn.Hardtanh(-0.5, 2.0),
    lambda nn: nn.Threshold(0.1, 20.0),
    lambda nn: nn.Sigmoid(),
    lambda nn: nn.Tanh(),
    lambda nn: nn.Tanhshrink(),
    lambda nn: nn.LogSigmoid(),
    lambda nn: nn.Softsign(),
    lambda nn: nn.Softplus(2, 5),
    lambda nn: nn.Hardshrink(0.3),
    lambda nn: nn.Softshrink(0.3),
]
INPLACE = [
    lambda nn: nn.ReLU(inplace=True),
    lambda nn: nn.ReLU6(inplace=True),
    lambda nn: nn.LeakyReLU(0.2, inplace=True),
    lambda nn: nn.ELU(inplace=True),
    lambda nn: nn.SiLU(inplace=True),
    lambda nn: nn.Hardtanh(inplace=True),
]


def both(make):
    """The layer of both, with the same weights."""
    theirs = make(torch.nn)
    ours = make(nn)
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(1)
    for name, value in theirs.state_dict().items():
        if value.dtype.is_floating_point:
            # Off the initial ones and zeros, which hide mistakes.
            value += torch.from_numpy(rng.random(tuple(value.shape))).float()
    state = {k: to_holdfast(v) for k, v in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)
    return ours, theirs


def case_name(make):
    return repr(make(torch.nn)).replace("\n", " ")


@pytest.mark.parametrize("make,shapes", LAYERS, ids=lambda v: _id(v))
def test_layer(make, shapes):
    check(make, shapes, train=True)
    check(make, shapes, train=False)


def _id(value):
    return case_name(value) if callable(value) else str(value[0])


def check(make, shapes, train):
    ours, theirs = both(make)
    ours.train(train), theirs.train(train)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    our_inputs, their_inputs = leaves(arrays)
    assert_same_results(
        ours(*our_inputs),
        theirs(*their_inputs),
        [*our_inputs, *ours.parameters()],
        [*their_inputs, *theirs.parameters()],
        rtol=2e-4,
        atol=1e-5,
    )
    for name, value in theirs.state_dict().items():
        assert_close(ours.state_dict()[name], value)


@pytest.mark.parametrize("make", ACTIVATIONS, ids=case_name)
def test_activation(make):
    ours, theirs = both(make)
    values = np.concatenate(
        # Off the corners of clamps, where any slope between is right.
        [
            np.linspace(-8, 8, 41) + 1e-3,
            np.linspace(-0.9, 0.8, 19),
            [0],
            [-100, 100, 88, -104],
        ]
    ).astype("float32")
    our_inputs, their_inputs = leaves([values])
    assert_same_results(
        ours(*our_inputs),
        theirs(*their_inputs),
        our_inputs,
        their_inputs,
        rtol=1e-4,
        atol=2e-6,
    )


@pytest.mark.parametrize("make", INPLACE, ids=case_name)
def test_inplace_activation(make):
    ours, theirs = both(make)
    x = holdfast.linspace(-2, 2, 9)
    y = torch.linspace(-2, 2, 9)
    assert ours(x) is x or holdfast.equal(ours(x), x)
    theirs(y)
    assert_close(x, y)


def test_embedding():
    for options in ({}, {"padding_idx": 2}, {"padding_idx": -1}):
        ours, theirs = both(lambda nn: nn.Embedding(5, 3, **options))
        index = np.array([[0, 2, 4], [4, 4, 1]])
        assert_same_results(
            ours(holdfast.tensor(index)),
            theirs(torch.from_numpy(index)),
            [ours.weight],
            [theirs.weight],
        )


def test_embedding_of_a_table():
    table = holdfast.arange(6.0).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(holdfast.tensor(2)).tolist() == [4, 5]
    assert nn.Embedding(4, 2, padding_idx=1).weight[1].tolist() == [0, 0]
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.Embedding(4, 2, padding_idx=4)


def test_max_pool_indices():
    layer = nn.MaxPool2d(2, return_indices=True)
    x = np.random.default_rng(0).random((2, 3, 4, 4)).astype("float32")
    theirs = torch.nn.MaxPool2d(2, return_indices=True)(torch.from_numpy(x))
    for ours, their in zip(layer(holdfast.tensor(x)), theirs):
        assert_close(ours, their)


def test_dropout():
    holdfast.manual_seed(3)
    layer = nn.Dropout(0.25)
    x = holdfast.ones(100, 100, requires_grad=True)
    y = layer(x)
    kept = (y != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02
    assert abs(y.max().item() - 1 / 0.75) < 1e-6
    y.sum().backward()
    assert holdfast.equal(x.grad, y.detach())
    assert not holdfast.equal(layer(x), y)
    holdfast.manual_seed(3)
    assert holdfast.equal(layer(x), y)
    assert layer.eval()(x) is x
    assert nn.Dropout(0.0)(x) is x
    assert nn.Dropout(1.0)(x).abs().sum().item() == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


def test_dropout2d_of_rows_warns():
    with pytest.warns(UserWarning, match="Received a 2-D input"):
        y = nn.Dropout2d(0.5)(holdfast.ones(50, 4))
    assert set(y.unique().tolist()) == {0.0, 2.0}
    with pytest.raises(RuntimeError, match="must have 2 or 3 dimensions"):
        nn.functional.dropout1d(holdfast.ones(5))


def test_dropout2d_drops_channels():
    y = nn.Dropout2d(0.5)(holdfast.ones(8, 16, 3, 3))
    sums = set(y.sum((2, 3)).flatten().tolist())
    assert sums == {0.0, 18.0}


@pytest.mark.parametrize(
    "make,error,text",
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), ValueError, "positive integer"),
        (
            lambda: nn.Conv2d(1, 1, 3, 2, padding="same"),
            ValueError,
            "not supported for strided",
        ),
        (lambda: nn.Conv2d(1, 1, 3, padding="full"), ValueError, "Invalid padding"),
        (
            lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"),
            ValueError,
            "padding_mode must be one of",
        ),
        (lambda: nn.GroupNorm(3, 4), ValueError, "divisible"),
        (lambda: nn.Unflatten("name", (2, 3)), TypeError, "dim must be an int"),
        (
            lambda: nn.BatchNorm2d(3)(holdfast.ones(2, 3)),
            ValueError,
            r"expected 4D input \(got 2D input\)",
        ),
        (
            lambda: nn.BatchNorm1d(3)(holdfast.ones(1, 3)),
            ValueError,
            "more than 1 value per channel",
        ),
        (
            lambda: nn.LayerNorm(3)(holdfast.ones(2, 4)),
            RuntimeError,
            "Given normalized_shape",
        ),
        (
            lambda: nn.Linear(3, 4)(holdfast.ones(2, 5)),
            RuntimeError,
            "linear.*f32",
        ),
        (
            lambda: nn.Conv2d(3, 4, 3)(holdfast.ones(1, 2, 5, 5)),
            RuntimeError,
            "conv2d",
        ),
    ],
)
def test_mistakes_raise_at_the_call(make, error, text):
    with pytest.raises(error, match=text):
        make()
