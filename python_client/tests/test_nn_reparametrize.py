# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""weight_norm, spectral_norm, parametrize, prune and fusion, against PyTorch's."""

import copy
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
importlib.import_module("torch.nn.utils.prune")


def twins(make, wrap):
    """make(nn), wrapped by wrap(nn, module) in both, with one state_dict."""
    peer.manual_seed(0)
    theirs = wrap(peer.nn, make(peer.nn))
    ours = wrap(nn, make(nn))
    state = {k: to_holdfast(v) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    return ours, theirs


def assert_train_alike(ours, theirs, shape, steps=3):
    """Equal losses, and parameters, over some steps of SGD."""
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, y = holdfast.tensor(array), peer.tensor(array)
    a = holdfast.optim.SGD(ours.parameters(), lr=0.1)
    b = peer.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(steps):
        losses = []
        for model, data, optimizer in ((ours, x, a), (theirs, y, b)):
            optimizer.zero_grad()
            loss = (model(data) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        assert_close(*losses)
    mine = ours.state_dict()
    for name, value in theirs.state_dict().items():
        assert_close(mine[name], value, rtol=1e-4, atol=1e-5)


LAYERS = {
    "linear": (lambda n: n.Linear(4, 3), (5, 4)),
    "conv": (lambda n: n.Conv2d(2, 3, 3), (2, 2, 5, 5)),
    "transposed": (lambda n: n.ConvTranspose1d(2, 3, 3), (2, 2, 5)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(layer, dim):
    make, shape = LAYERS[layer]
    ours, theirs = twins(make, lambda n, m: n.utils.weight_norm(m, dim=dim))
    assert_train_alike(ours, theirs, shape)
    nn.utils.remove_weight_norm(ours)
    peer.nn.utils.remove_weight_norm(theirs)
    assert_train_alike(ours, theirs, shape, steps=1)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(ours)


@pytest.mark.parametrize("layer", LAYERS)
def test_spectral_norm(layer):
    make, shape = LAYERS[layer]
    ours, theirs = twins(make, lambda n, m: n.utils.spectral_norm(m))
    assert_train_alike(ours, theirs, shape)
    ours.eval(), theirs.eval()
    nn.utils.remove_spectral_norm(ours)
    peer.nn.utils.remove_spectral_norm(theirs)
    assert_train_alike(ours, theirs, shape, steps=1)


@pytest.mark.parametrize("layer", LAYERS)
def test_parametrized_spectral_norm(layer):
    make, shape = LAYERS[layer]
    ours, theirs = twins(make, lambda n, m: n.utils.parametrizations.spectral_norm(m))
    assert_train_alike(ours, theirs, shape)


def symmetric(n):
    class Symmetric(n.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def test_parametrize():
    def wrap(n, m):
        return n.utils.parametrize.register_parametrization(m, "weight", symmetric(n))

    ours, theirs = twins(lambda n: n.Linear(3, 3), wrap)
    assert repr(ours) == repr(theirs)
    assert_train_alike(ours, theirs, (4, 3))
    parametrize = nn.utils.parametrize
    assert parametrize.is_parametrized(ours, "weight")
    assert not parametrize.is_parametrized(ours, "bias")
    with parametrize.cached():
        assert ours.weight is ours.weight
    assert ours.weight is not ours.weight
    square = holdfast.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    ours.weight = square
    assert ours.weight.tolist() == square.tolist()
    other = copy.deepcopy(ours)
    assert other.weight.tolist() == ours.weight.tolist()
    assert parametrize.type_before_parametrizations(ours) is nn.Linear
    parametrize.remove_parametrizations(ours, "weight")
    assert type(ours) is nn.Linear and isinstance(ours.weight, nn.Parameter)
    assert ours.weight.tolist() == square.tolist()
    assert "weight" in dict(ours.named_parameters())
    assert parametrize.is_parametrized(other)


def test_parametrization_by_several_tensors():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    names = sorted(n for n, _ in layer.named_parameters())
    assert names[-2:] == [f"parametrizations.weight.original{i}" for i in (0, 1)]
    plain = nn.utils.weight_norm(copy.deepcopy(nn.Linear(3, 2)))
    plain.weight_g.data = layer.parametrizations.weight.original0.data
    plain.weight_v.data = layer.parametrizations.weight.original1.data
    plain.bias.data = layer.bias.data
    x = holdfast.ones(1, 3)
    np.testing.assert_allclose(plain(x).tolist(), layer(x).tolist(), rtol=1e-6)


def test_a_parametrization_may_not_change_the_shape():
    class Half(nn.Module):
        def forward(self, x):
            return x[:1]

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        nn.utils.parametrize.register_parametrization(layer, "weight", Half())
    assert "weight" in dict(layer.named_parameters())
    with pytest.raises(ValueError, match="'nothing'"):
        nn.utils.parametrize.register_parametrization(layer, "nothing", Half())


PRUNINGS = {
    "l1": lambda p, m: p.l1_unstructured(m, "weight", amount=0.4),
    "l1 count": lambda p, m: p.l1_unstructured(m, "weight", amount=3),
    "ln": lambda p, m: p.ln_structured(m, "weight", amount=1, n=2, dim=0),
    "identity": lambda p, m: p.identity(m, "bias"),
    "twice": lambda p, m: p.ln_structured(
        p.l1_unstructured(m, "weight", amount=0.3), "weight", amount=0.5, n=1, dim=1
    ),
    "thrice": lambda p, m: p.l1_unstructured(
        p.ln_structured(m, "weight", amount=1, n=2, dim=0), "weight", amount=0.5
    ),
}


@pytest.mark.parametrize("name", PRUNINGS)
def test_prune(name):
    peer.manual_seed(1)
    theirs, ours = peer.nn.Linear(4, 3), nn.Linear(4, 3)
    ours.load_state_dict({k: to_holdfast(v) for k, v in theirs.state_dict().items()})
    PRUNINGS[name](nn.utils.prune, ours)
    PRUNINGS[name](peer.nn.utils.prune, theirs)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    assert_train_alike(ours, theirs, (5, 4))
    parameter = "bias" if name == "identity" else "weight"
    assert nn.utils.prune.is_pruned(ours)
    nn.utils.prune.remove(ours, parameter)
    peer.nn.utils.prune.remove(theirs, parameter)
    assert not nn.utils.prune.is_pruned(ours)
    assert_train_alike(ours, theirs, (5, 4), steps=1)


def test_global_and_random_pruning():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    parts = [(layer, "weight") for layer in model]
    prune = nn.utils.prune
    prune.global_unstructured(parts, prune.L1Unstructured, amount=0.5)
    assert sum((layer.weight == 0).sum().item() for layer in model) == 16
    layer = prune.random_unstructured(nn.Linear(4, 4), "weight", amount=5)
    assert (layer.weight == 0).sum().item() == 5
    layer = prune.random_structured(nn.Linear(4, 4), "weight", amount=2, dim=1)
    assert (layer.weight.abs().sum(0) == 0).sum().item() == 2
    layer = prune.custom_from_mask(nn.Linear(1, 2), "bias", holdfast.tensor([0, 1]))
    assert layer.bias[0].item() == 0
    with pytest.raises(ValueError, match="amount=1.5"):
        prune.l1_unstructured(nn.Linear(1, 1), "weight", amount=1.5)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(nn.Linear(1, 1), "weight")


def test_a_pruning_method_of_ones_own():
    class EveryOther(nn.utils.prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = nn.Linear(3, 2)
    EveryOther.apply(layer, "weight")
    assert (layer.weight == 0).tolist() == [[True, False, True], [False, True, False]]


def test_fusion():
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    norm.running_mean.uniform_()
    norm.running_var.uniform_(1, 2)
    norm.weight.data.uniform_()
    x = holdfast.randn(1, 2, 5, 5)
    with pytest.raises(AssertionError, match="only for eval"):
        nn.utils.fuse_conv_bn_eval(conv, norm)
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    np.testing.assert_allclose(
        fused(x).tolist(), norm(conv(x)).tolist(), rtol=1e-4, atol=1e-5
    )


MAPS = ("matrix_exp", "cayley", "householder")


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 6)])
@pytest.mark.parametrize("map_name", (None, *MAPS))
def test_orthogonal(shape, map_name):
    def wrap(n, module):
        return n.utils.parametrizations.orthogonal(module, orthogonal_map=map_name)

    ours, theirs = twins(lambda n: n.Linear(*shape[::-1], bias=False), wrap)
    assert_train_alike(ours, theirs, (7, shape[1]))
    tall = ours.weight if shape[0] >= shape[1] else ours.weight.T
    assert (tall.T @ tall - holdfast.eye(min(shape))).abs().max() < 1e-5


@pytest.mark.parametrize("map_name", MAPS)
def test_orthogonal_starts_from_an_orthogonal_value(map_name):
    value = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    made = {}
    for torch in (holdfast, peer):
        layer = torch.nn.Linear(3, 5, dtype=torch.float64)
        layer.weight.data = torch.tensor(value[:, :3].copy())
        register = torch.nn.utils.parametrizations.orthogonal
        made[torch] = register(layer, "weight", map_name, use_trivialization=False)
        if map_name != "householder":  # from the value as it is
            continue
        np.testing.assert_allclose(layer.weight.detach().numpy(), value[:, :3])
        layer.weight = torch.tensor(value[:, 2:].copy())
        np.testing.assert_allclose(layer.weight.detach().numpy(), value[:, 2:])
    assert_close(made[holdfast].weight, made[peer].weight)


def test_orthogonal_says_what_it_cannot():
    register = nn.utils.parametrizations.orthogonal
    layer = nn.Linear(3, 2)
    for args, message in (
        (("bias",), "Expected a matrix or batch of matrices"),
        (("foo",), "no parameter or buffer with name 'foo'"),
        (("weight", "qr"), "orthogonal_map has to be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            register(layer, *args)
    register(layer, "weight", "cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        layer.weight = holdfast.eye(2, 3)
