# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisation, activation, dropout and lookup layers that test_nn_layers.py
has not, against PyTorch's, and their mistakes."""

import math

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from holdfast import nn
from test_nn_layers import both, check
from torch_peer import assert_close, assert_same_results, torch

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

LAYERS = [
    (lambda nn: nn.BatchNorm1d(70), [(40, 70)]),
    (lambda nn: nn.BatchNorm3d(3), [(2, 3, 2, 3, 4)]),
    (lambda nn: nn.InstanceNorm1d(3), [(2, 3, 5)]),
    (lambda nn: nn.InstanceNorm1d(3, affine=True), [(3, 5)]),
    (lambda nn: nn.InstanceNorm2d(3, affine=True), [(2, 3, 5, 4)]),
    (lambda nn: nn.InstanceNorm2d(3, track_running_stats=True), [(2, 3, 5, 4)]),
    (lambda nn: nn.InstanceNorm3d(2), [(2, 2, 3, 2, 2)]),
    (lambda nn: nn.LayerNorm(300), [(70, 300)]),
    (lambda nn: nn.GroupNorm(2, 6), [(3, 6)]),
    (lambda nn: nn.Softmax2d(), [(2, 3, 4, 5)]),
    (lambda nn: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)]),
    (lambda nn: nn.Bilinear(3, 4, 5, bias=False), [(2, 6, 3), (2, 6, 4)]),
    (lambda nn: nn.CosineSimilarity(), [(3, 4), (3, 4)]),
    (lambda nn: nn.PairwiseDistance(keepdim=True), [(3, 4), (3, 4)]),
]


@pytest.mark.parametrize("make,shapes", LAYERS)
@pytest.mark.parametrize("train", [True, False])
def test_layer(make, shapes, train):
    check(make, shapes, train)


def test_rms_norm_layer():
    x = holdfast.randn(4, 6)
    layer = nn.RMSNorm(6)
    assert list(layer.state_dict()) == ["weight"]
    eps = np.finfo(np.float32).eps
    expected = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    assert holdfast.allclose(layer(x), expected, 1e-5, 1e-6)
    assert repr(layer) == "RMSNorm((6,), eps=None, elementwise_affine=True)"


def test_running_statistics_of_one_step():
    mean, var = holdfast.zeros(3), holdfast.ones(3)
    x = holdfast.randn(8, 3, 4)
    F.batch_norm(x, mean, var, training=True, momentum=0.25)
    assert holdfast.allclose(mean, x.mean((0, 2)) * 0.25, 1e-4, 1e-6)
    assert holdfast.allclose(var, 0.75 + 0.25 * x.var((0, 2)), 1e-4, 1e-6)


def test_clipping_of_integers():
    x = holdfast.tensor([-9, -1, 3, 9])
    assert F.relu6(x).tolist() == [0, 0, 3, 6]
    assert F.hardtanh(x, -2, 5).tolist() == [-2, -1, 3, 5]
    assert F.threshold(x, 2, -7).tolist() == [-7, -7, 3, 9]
    assert F.relu6(x).dtype == holdfast.int64


def test_rrelu():
    x = holdfast.full((1000,), -1.0)
    layer = nn.RReLU(0.1, 0.3)
    y = layer(x)
    assert -0.3 <= y.min().item() and y.max().item() <= -0.1
    assert abs(y.mean().item() + 0.2) < 0.01
    assert holdfast.allclose(layer.eval()(x), x * 0.2)


@pytest.mark.parametrize(
    "drop,shape",
    [(nn.Dropout1d, (16, 64, 3)), (nn.Dropout3d, (16, 64, 2, 2, 2))],
)
def test_dropout_of_channels(drop, shape):
    y = drop(0.5)(holdfast.ones(*shape))
    inner = math.prod(shape[2:])
    sums = y.reshape(16, 64, -1).sum(-1)
    assert set(sums.flatten().tolist()) == {0.0, 2.0 * inner}


@pytest.mark.parametrize("drop", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_keeps_mean_and_variance(drop):
    x = holdfast.randn(200, 500)
    layer = drop(0.3)
    y = layer(x)
    assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
    assert layer.eval()(x) is x


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax(hard):
    logits = holdfast.tensor([0.0, 1.0, 2.0]).expand(20000, 3)
    y = F.gumbel_softmax(logits, hard=hard)
    assert holdfast.allclose(y.sum(-1), holdfast.ones(20000), 1e-5, 1e-5)
    drawn = F.one_hot(y.argmax(-1), 3).float().mean(0)
    expected = holdfast.tensor([0.0, 1.0, 2.0]).softmax(0)
    assert holdfast.allclose(drawn, expected, 0, 0.02)


def test_embedding_options():
    index = np.array([[0, 2, 4], [4, 4, 1]])
    for options in (
        {"max_norm": 1.0},
        {"max_norm": 0.5, "norm_type": 1.0},
        {"scale_grad_by_freq": True},
        {"scale_grad_by_freq": True, "padding_idx": 4},
    ):
        ours, theirs = both(lambda nn: nn.Embedding(5, 3, **options))
        assert_same_results(
            ours(holdfast.tensor(index)),
            theirs(torch.from_numpy(index)),
            [ours.weight],
            [theirs.weight],
        )
        assert_close(ours.weight, theirs.weight)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "offsets,options",
    [
        ([0, 3, 3, 5], {}),
        ([0, 2, 7], {"include_last_offset": True}),
        ([0, 4], {"padding_idx": 1}),
    ],
)
def test_embedding_bag(mode, offsets, options):
    ours, theirs = both(lambda nn: nn.EmbeddingBag(5, 3, mode=mode, **options))
    index = np.array([1, 0, 4, 4, 1, 3, 2])
    assert_same_results(
        ours(holdfast.tensor(index), holdfast.tensor(offsets)),
        theirs(torch.from_numpy(index), torch.tensor(offsets)),
        [ours.weight],
        [theirs.weight],
    )


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda x: F.group_norm(x, 4), RuntimeError, "divisible by num_groups"),
        (
            lambda x: F.layer_norm(x, (6,), holdfast.ones(5)),
            RuntimeError,
            "Expected weight to be of same shape",
        ),
        (lambda x: F.layer_norm(x, ()), RuntimeError, "at least 1-dimensional"),
        (
            lambda x: F.batch_norm(x, None, None),
            RuntimeError,
            "running_mean and running_var",
        ),
        (
            lambda x: F.batch_norm(x, None, None, holdfast.ones(4), training=True),
            RuntimeError,
            r"weight to be a tensor of shape \[6\]",
        ),
        (lambda x: F.instance_norm(x), ValueError, "more than 1 spatial element"),
        (lambda x: F.gelu(x, "exact"), RuntimeError, "none or tanh"),
        (lambda x: F.silu(x.long()), RuntimeError, "not implemented for 'Long'"),
        (lambda x: F.celu(x, 0.0), RuntimeError, "alpha cannot be 0"),
        (lambda x: F.rrelu(x, 0.5, 0.1), RuntimeError, "Lower bound"),
        (lambda x: F.embedding_bag(x.long(), x, mode="min"), ValueError, "mode has"),
        (lambda x: F.embedding_bag(x[0].long(), x), ValueError, "offsets has to be"),
        (lambda x: F.bilinear(x, x, holdfast.ones(2, 6, 5)), RuntimeError, "bilinear"),
    ],
)
def test_mistakes_raise_at_the_call(call, error, text):
    with pytest.raises(error, match=text):
        call(holdfast.ones(2, 6))
