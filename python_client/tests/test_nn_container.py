# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sequential, ModuleList, ModuleDict, ParameterList."""

from collections import OrderedDict

import pytest

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def kinds(modules):
    return [type(module).__name__ for module in modules]


def test_sequential_runs_in_order():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    x = holdfast.randn(3, 2, 2)
    assert holdfast.equal(model(x), model[1](x.flatten(1)))


def test_sequential_named():
    model = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert list(dict(model.named_children())) == ["a", "b"]
    assert model.b is model[1] is model[-1]


def test_sequential_slices_share_modules():
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    part = model[1:]
    assert isinstance(part, nn.Sequential) and kinds(part) == ["Tanh", "Sigmoid"]
    assert part[0] is model[1]


def test_sequential_edits():
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    model.append(nn.Sigmoid()).insert(1, nn.GELU())
    assert kinds(model) == ["ReLU", "GELU", "Tanh", "Sigmoid"]
    del model[0]
    assert kinds(model) == ["GELU", "Tanh", "Sigmoid"]
    assert list(model._modules) == ["0", "1", "2"]
    assert type(model.pop(-1)).__name__ == "Sigmoid"
    model.extend([nn.SiLU()])
    assert kinds(model + nn.Sequential(nn.ELU())) == ["GELU", "Tanh", "SiLU", "ELU"]
    with pytest.raises(IndexError, match="out of range"):
        model[3]
    with pytest.raises(ValueError, match="Sequential"):
        model + [nn.ReLU()]
    del model[0:2]
    assert kinds(model) == ["SiLU"]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    assert len(layers) == 3 and len(list(layers.parameters())) == 6
    assert isinstance(layers[1:], nn.ModuleList) and layers[1:][0] is layers[1]
    layers.insert(0, nn.ReLU())
    layers += [nn.Tanh()]
    assert kinds(layers) == ["ReLU", "Linear", "Linear", "Linear", "Tanh"]
    del layers[1:4]
    assert kinds(layers) == ["ReLU", "Tanh"]
    layers[-1] = nn.GELU()
    assert kinds(layers + [nn.ELU()]) == ["ReLU", "GELU", "ELU"]
    assert type(layers.pop(0)).__name__ == "ReLU"
    with pytest.raises(NotImplementedError):
        layers(1)
    with pytest.raises(TypeError, match="iterable"):
        layers.extend(3)
    with pytest.raises(TypeError, match="not a Module subclass"):
        layers.append(3)


def test_module_dict():
    heads = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    assert list(heads) == list(heads.keys()) == ["a", "b"]
    assert "a" in heads and len(heads) == 2
    assert [n for n, _ in heads.named_parameters()] == ["b.weight", "b.bias"]
    heads["c"] = nn.Tanh()
    assert kinds(heads.values()) == ["ReLU", "Linear", "Tanh"]
    assert type(heads.pop("a")).__name__ == "ReLU"
    del heads["b"]
    assert [name for name, _ in heads.items()] == ["c"]
    heads.clear()
    assert len(heads) == 0


def test_parameter_list():
    values = nn.ParameterList([holdfast.ones(2), nn.Parameter(holdfast.zeros(1))])
    assert all(isinstance(v, nn.Parameter) for v in values)
    values.append(holdfast.ones(1, 3))
    assert [n for n, _ in values.named_parameters()] == ["0", "1", "2"]
    assert len(values) == 3 and len(values[1:]) == 2
    values[-1] = holdfast.ones(4)
    assert values[2].numel() == 4
    assert "(0): Parameter containing: [" in repr(values)
    with pytest.raises(IndexError):
        values[3]
