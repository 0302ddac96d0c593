# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Module: registration, walking, modes, hooks, text, copies."""

import copy
import pickle

import pytest

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, bias=False)
        self.scale = nn.Parameter(holdfast.ones(2))
        self.register_buffer("offset", holdfast.zeros(2))
        self.register_buffer("scratch", holdfast.zeros(1), persistent=False)
        self.register_parameter("absent", None)

    def forward(self, x):
        return self.second(self.first(x).relu()) * self.scale + self.offset


def test_parameters_in_order():
    names = [name for name, _ in Pair().named_parameters()]
    assert names == ["scale", "first.weight", "first.bias", "second.weight"]


def test_buffers_and_state_dict_keys():
    model = Pair()
    assert [name for name, _ in model.named_buffers()] == ["offset", "scratch"]
    assert list(model.state_dict()) == [
        "scale",
        "offset",
        "first.weight",
        "first.bias",
        "second.weight",
    ]
    assert not any(t.requires_grad for t in model.state_dict().values())


def test_shared_parameter_is_listed_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    assert [n for n, _ in model.named_parameters()] == [
        "0.weight",
        "0.bias",
        "1.bias",
    ]
    both = model.named_parameters(remove_duplicate=False)
    assert len(list(both)) == 4
    assert len(model.state_dict()) == 4


def test_modules_children_and_lookup():
    model = nn.Sequential(Pair(), nn.ReLU())
    assert [n for n, _ in model.named_modules()] == [
        "",
        "0",
        "0.first",
        "0.second",
        "1",
    ]
    assert [n for n, _ in model.named_children()] == ["0", "1"]
    assert model.get_submodule("0.first") is model[0].first
    assert model.get_parameter("0.first.bias") is model[0].first.bias
    assert model.get_buffer("0.offset") is model[0].offset
    with pytest.raises(AttributeError, match="has no attribute `third`"):
        model.get_submodule("0.third")
    with pytest.raises(AttributeError, match="is not an nn.Parameter"):
        model.get_parameter("0.offset")


def test_apply_visits_children_first():
    seen = []
    model = Pair()
    assert model.apply(seen.append) is model
    assert seen == [model.first, model.second, model]


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.inner = nn.ReLU()

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()

    class EarlyParameter(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(holdfast.ones(1))

    with pytest.raises(AttributeError, match="cannot assign parameters before"):
        EarlyParameter()


def test_assignment_under_the_name_of_a_method():
    class Net(nn.Module):
        head = None

        def __init__(self):
            super().__init__()
            self.parameters = nn.ModuleList([nn.Linear(2, 1)])
            self.head = nn.Linear(1, 1)

    net = Net()
    # The class's own are found first; the modules are there all the same.
    assert net.head is None and len(list(net.parameters())) == 4
    assert [name for name, _ in net.named_children()] == ["parameters", "head"]


def test_assignment_of_the_wrong_kind():
    model = Pair()
    with pytest.raises(TypeError, match="cannot assign .* as parameter 'scale'"):
        model.scale = holdfast.ones(2)
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        model.first = 3
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'offset'"):
        model.offset = "zero"
    model.offset = holdfast.ones(2)
    assert model.state_dict()["offset"].tolist() == [1, 1]


def test_registration_errors():
    model = nn.Module()
    with pytest.raises(KeyError, match="can.*t contain"):
        model.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="can.*t be empty"):
        model.register_buffer("", holdfast.ones(1))
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        model.register_buffer("forward", holdfast.ones(1))
    with pytest.raises(TypeError, match="is not a Module subclass"):
        model.add_module("x", holdfast.ones(1))
    with pytest.raises(TypeError, match="required"):
        model.register_parameter("x", holdfast.ones(1))
    with pytest.raises(TypeError, match="should be a string"):
        model.register_parameter(3, None)


def test_an_attribute_changes_kind():
    model = nn.Module()
    model.x = 3
    model.x = nn.Parameter(holdfast.ones(1))
    assert "x" not in model.__dict__ and len(list(model.parameters())) == 1
    model.x = None
    assert model.x is None and not list(model.parameters())
    del model.x
    assert not hasattr(model, "x")
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'x'"):
        model.x
    model.y = nn.ReLU()
    model.y = nn.Parameter(holdfast.ones(1))
    assert not list(model.children()) and len(list(model.parameters())) == 1


def test_a_replaced_module_keeps_its_place():
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    model[1] = nn.GELU()
    assert [type(m).__name__ for m in model] == ["ReLU", "GELU", "Sigmoid"]


def test_buffer_class():
    model = nn.Module()
    model.kept = nn.Buffer(holdfast.ones(1))
    model.dropped = nn.Buffer(holdfast.ones(1), persistent=False)
    assert list(model.state_dict()) == ["kept"]
    assert len(list(model.buffers())) == 2


def test_parameter_shares_storage_and_is_a_leaf():
    data = holdfast.zeros(3)
    parameter = nn.Parameter(data)
    assert parameter.is_leaf and parameter.requires_grad
    data.fill_(2)
    assert parameter.tolist() == [2, 2, 2]
    assert type(parameter + 1) is holdfast.Tensor
    assert repr(nn.Parameter(holdfast.ones(1))).startswith(
        "Parameter containing:\ntensor([1.]"
    )
    with pytest.raises(TypeError, match="must be a Tensor"):
        nn.Parameter([1.0])


def test_train_and_eval_reach_every_module():
    model = nn.Sequential(Pair(), nn.Dropout())
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    model.train()
    assert all(m.training for m in model.modules())
    with pytest.raises(ValueError, match="expected to be boolean"):
        model.train(3)


def test_zero_grad_and_requires_grad():
    model = Pair()
    model(holdfast.ones(1, 3)).sum().backward()
    grads = [p.grad for p in model.parameters()]
    assert all(grad is not None for grad in grads)
    model.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum().item() == 0 for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    assert not model(holdfast.ones(1, 3)).requires_grad


def test_conversions_keep_the_parameter_objects():
    model = Pair()
    model.register_buffer("count", holdfast.zeros((), dtype=holdfast.int64))
    before = list(model.parameters())
    model(holdfast.ones(1, 3)).sum().backward()
    assert model.double() is model
    assert all(a is b for a, b in zip(before, model.parameters()))
    assert all(p.dtype == holdfast.float64 for p in model.parameters())
    assert all(p.grad.dtype == holdfast.float64 for p in model.parameters())
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    assert model.offset.dtype == holdfast.float64
    assert model.count.dtype == holdfast.int64
    model.to(holdfast.float32).to("cpu").to(holdfast.ones(1))
    assert model.scale.dtype == holdfast.float32
    with pytest.raises(TypeError, match="only accepts floating point"):
        model.to(holdfast.int64)


def test_forward_hooks():
    model = nn.Linear(2, 2)
    events = []

    def before(module, args):
        events.append("before")
        return args[0] * 2

    def after(module, args, output):
        events.append("after")
        assert module is model
        return output + 1

    x = holdfast.ones(1, 2)
    plain = model(x * 2)
    first = model.register_forward_pre_hook(before)
    second = model.register_forward_hook(after)
    assert holdfast.allclose(model(x), plain + 1)
    assert events == ["before", "after"]
    first.remove()
    with second:
        pass
    model(x)
    assert events == ["before", "after"]


def test_hooks_with_kwargs_and_always_call():
    class Fails(nn.Module):
        def forward(self, x, *, fail=True):
            if fail:
                raise KeyError("asked for")
            return x

    model, seen = Fails(), []
    model.register_forward_hook(
        lambda m, args, kwargs, out: seen.append((kwargs, out)),
        with_kwargs=True,
        always_call=True,
    )
    with pytest.raises(KeyError):
        model(1)
    assert seen == [({}, None)]
    model.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"fail": False}), with_kwargs=True
    )
    assert model(5) == 5
    assert seen[-1] == ({"fail": False}, 5)


def test_missing_forward():
    with pytest.raises(NotImplementedError, match='required "forward" function'):
        nn.Module()(1)


def test_repr():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()), nn.Flatten())
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        "  (2): Flatten(start_dim=1, end_dim=-1)\n"
        ")"
    )


def test_deepcopy_and_pickle_are_independent():
    model = Pair()
    model.second.weight = nn.Parameter(holdfast.ones(2, 4))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(twin.state_dict()) == list(model.state_dict())
        assert isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad
        with holdfast.no_grad():
            twin.scale.fill_(7)
        assert model.scale.tolist() == [1, 1]
        x = holdfast.ones(1, 3)
        with holdfast.no_grad():
            twin.scale.fill_(1)
        assert holdfast.equal(twin(x), model(x))


def test_deepcopy_keeps_ties():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    twin = copy.deepcopy(model)
    assert twin[1].weight is twin[0].weight
    assert twin[0].weight is not model[0].weight


def test_unknown_layers_fail_by_name():
    with pytest.raises(NotImplementedError, match="nn.CrossMapLRN2d"):
        nn.CrossMapLRN2d
    assert not hasattr(nn, "CrossMapLRN2d")


def test_a_network_made_half_keeps_its_gradients():
    model = Pair()
    model(holdfast.ones(1, 3)).sum().backward()
    before = model.first.weight.grad.clone()
    model.first.weight.data = model.first.weight.data.half()
    assert model.first.weight.dtype is model.first.weight.grad.dtype is holdfast.half
    assert holdfast.allclose(model.first.weight.grad.float(), before, rtol=1e-2)
    model.first.weight.data = model.first.weight.data.float()
    model(holdfast.ones(1, 3)).sum().backward()
    assert holdfast.allclose(model.first.weight.grad, 2 * before, rtol=1e-2)
