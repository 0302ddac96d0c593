# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Lazy layers, ParameterDict, SyncBatchNorm, adaptive softmax, nn.modules."""

import importlib

import numpy as np
import pytest
import torch_peer
from torch_peer import assert_close, to_holdfast

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")
peer = torch_peer.torch


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda n: n.LazyLinear(3), (2, 5)),
        (lambda n: n.LazyLinear(3, bias=False), (2, 4, 5)),
        (lambda n: n.LazyConv1d(3, 2), (2, 5, 6)),
        (lambda n: n.LazyConv2d(4, 3, stride=2, padding=1, groups=2), (2, 2, 6, 6)),
        (lambda n: n.LazyConv3d(3, 2), (1, 2, 3, 3, 3)),
        (lambda n: n.LazyConvTranspose2d(3, 2), (1, 2, 3, 3)),
        (lambda n: n.LazyBatchNorm1d(), (4, 3)),
        (lambda n: n.LazyBatchNorm2d(affine=False), (4, 3, 2, 2)),
        (lambda n: n.LazyInstanceNorm2d(affine=True), (4, 3, 2, 2)),
    ],
)
def test_lazy_layers(make, shape):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    ours, theirs = make(nn), make(peer.nn)
    x, y = holdfast.tensor(array), peer.tensor(array)
    ours(x), theirs(y)
    assert type(ours).__name__ == type(theirs).__name__
    state = {k: to_holdfast(v) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    assert repr(ours) == repr(theirs)
    assert_close(ours(x), theirs(y))


def test_a_lazy_layer_learns_its_shape_from_a_checkpoint():
    layer = nn.LazyLinear(3)
    assert layer.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized parameter"):
        layer.weight.shape
    made = nn.Linear(5, 3)
    layer.load_state_dict(made.state_dict())
    assert layer.weight.tolist() == made.weight.tolist()
    assert type(layer.weight) is nn.Parameter


def test_parameter_dict():
    values = {"a": holdfast.ones(2), "b": nn.Parameter(holdfast.zeros(1)), "c": 3}
    parameters = nn.ParameterDict(values)
    assert [n for n, _ in parameters.named_parameters()] == ["a", "b"]
    assert list(parameters) == ["a", "b", "c"] and parameters["c"] == 3
    assert parameters.get("z", 1) == 1 and "a" in parameters and len(parameters) == 3
    assert (parameters | {"d": holdfast.ones(1)})["d"].requires_grad
    assert parameters.pop("a").tolist() == [1.0, 1.0] and "a" not in parameters
    del parameters["c"]
    size = "holdfast.float32 of size 1"
    assert repr(parameters).split("\n") == [
        "ParameterDict(",
        f"    (b): Parameter containing: [{size}]",
        ")",
    ]
    assert list(parameters.state_dict()) == ["b"]
    with pytest.raises(TypeError, match="not a string"):
        parameters[1] = holdfast.ones(1)


def test_sync_batch_norm_of_one_process():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    x = holdfast.randn(3, 1, 4, 4)
    expected = model(x).tolist()
    model[1].reset_running_stats()
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(made[1]) is nn.SyncBatchNorm and made[1].weight is model[1].weight
    assert made(x).tolist() == expected


def test_adaptive_softmax():
    peer.manual_seed(0)
    theirs = peer.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    ours = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)
    ours.load_state_dict({k: to_holdfast(v) for k, v in theirs.state_dict().items()})
    array = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    targets = np.array([0, 3, 4, 9, 10, 19])
    x, y = holdfast.tensor(array), peer.tensor(array)
    a, b = ours(x, holdfast.tensor(targets)), theirs(y, peer.tensor(targets))
    assert_close(a.output, b.output)
    assert_close(a.loss, b.loss)
    assert_close(ours.log_prob(x), theirs.log_prob(y))
    assert ours.predict(x).tolist() == theirs.predict(y).tolist()
    with pytest.raises(ValueError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])


def test_modules_by_pytorchs_files():
    norm = importlib.import_module("holdfast.nn.modules.batchnorm")
    assert isinstance(nn.BatchNorm2d(1), norm._BatchNorm)
    assert not isinstance(nn.InstanceNorm2d(1), norm._BatchNorm)
    assert isinstance(nn.InstanceNorm2d(1), nn.modules.instancenorm._InstanceNorm)
    assert nn.modules.Linear is nn.modules.linear.Linear is nn.Linear
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention
    assert nn.modules.utils._pair(3) == (3, 3)
    state = {"module.a": 1, "module.b": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2}
    with pytest.raises(AttributeError, match="nn.modules.conv.Nothing"):
        nn.modules.conv.Nothing


def test_old_names_of_init_warn():
    x = holdfast.zeros(3)
    with pytest.warns(UserWarning, match="nn.init.constant_"):
        nn.init.constant(x, 2.0)
    assert x.tolist() == [2.0] * 3
    with pytest.warns(UserWarning, match="clip_grad_norm_"):
        nn.utils.clip_grad_norm([x], 1.0)
