# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks of all modules at once, state_dict hooks and set_submodule, as in PyTorch 2."""

import pytest

from holdfast.nn.modules import module as every


@pytest.fixture
def net(torch):
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())


def test_around_each_forward(torch, net):
    order = []
    handles = [
        every.register_module_forward_pre_hook(
            lambda m, args: order.append((type(m).__name__, "pre"))
        ),
        every.register_module_forward_hook(
            lambda m, args, out: order.append((type(m).__name__, "post"))
        ),
    ]
    net[1].register_forward_hook(lambda m, args, out: order.append("own"))
    net(torch.ones(1, 2))
    assert order == [
        ("Sequential", "pre"),
        ("Linear", "pre"),
        ("Linear", "post"),
        ("ReLU", "pre"),
        ("ReLU", "post"),
        "own",
        ("Sequential", "post"),
    ]
    for handle in handles:
        handle.remove()
    net(torch.ones(1, 2))
    assert order[7:] == ["own"]


def test_they_may_replace_arguments_and_results(torch):
    identity = torch.nn.Identity()
    with every.register_module_forward_pre_hook(lambda m, args: args[0] + 1):
        assert identity(torch.ones(1)).item() == 2
    with every.register_module_forward_hook(
        lambda m, args, kwargs, out: out * 3, with_kwargs=True
    ):
        assert identity(torch.ones(1)).item() == 3
    assert identity(torch.ones(1)).item() == 1


def test_always_called(torch):
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    seen = []
    with every.register_module_forward_hook(
        lambda m, args, out: seen.append(out), always_call=True
    ):
        with pytest.raises(ValueError, match="broken"):
            Broken()(torch.ones(1))
    assert seen == [None]


def test_around_each_backward(torch, net):
    seen = []
    handles = [
        every.register_module_full_backward_pre_hook(
            lambda m, out: seen.append((type(m).__name__, "pre"))
        ),
        every.register_module_full_backward_hook(
            lambda m, into, out: seen.append((type(m).__name__, into[0] is None))
        ),
    ]
    x = torch.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    for handle in handles:
        handle.remove()
    assert seen == [
        ("Sequential", "pre"),
        ("ReLU", "pre"),
        ("ReLU", False),
        ("Linear", "pre"),
        ("Linear", False),
        ("Sequential", False),
    ]
    net(x).sum().backward()
    assert len(seen) == 6


def test_registrations(torch):
    names = []

    def note(module, name, value):
        names.append(name)

    with every.register_module_parameter_registration_hook(note):
        with every.register_module_buffer_registration_hook(note):
            with every.register_module_module_registration_hook(note):
                torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    assert names == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
        "0",
    ]
    frozen = torch.nn.Parameter(torch.zeros(2, 2), requires_grad=False)
    with every.register_module_parameter_registration_hook(lambda *_: frozen):
        assert torch.nn.Linear(2, 2, bias=False).weight is frozen


def test_hooks_on_a_state(torch, net):
    seen = []
    pre = net.register_state_dict_pre_hook(
        lambda m, prefix, keep: seen.append((prefix, keep))
    )
    net[0].register_state_dict_post_hook(
        lambda m, state, prefix, local: state.__delitem__(prefix + "bias")
    )
    state = net.state_dict()
    assert list(state) == ["0.weight"] and seen == [("", False)]
    pre.remove()
    net[1].register_state_dict_post_hook(lambda m, state, prefix, local: {})
    with pytest.raises(RuntimeError, match="must return None"):
        net.state_dict()


def test_set_submodule(torch, net):
    nn = torch.nn
    outer = nn.Module()
    outer.net = net
    relu = nn.Tanh()
    outer.set_submodule("net.1", relu)
    assert outer.net[1] is relu
    outer.set_submodule("net.more", nn.Identity())
    assert isinstance(outer.get_submodule("net.more"), nn.Identity)
    with pytest.raises(AttributeError, match="has no attribute `none`"):
        outer.set_submodule("net.none", relu, strict=True)
    with pytest.raises(AttributeError, match="`weight` is not an nn.Module"):
        outer.set_submodule("net.0.weight", relu)
    with pytest.raises(ValueError, match="without a target name"):
        outer.set_submodule("", relu)
    with pytest.raises(ValueError, match="is not an nn.Module"):
        outer.set_submodule("net.1", 3)


def test_compile_changes_nothing(torch, net):
    before = net(torch.ones(1, 2)).tolist()
    assert net.compile(mode="max-autotune", fullgraph=True) is None
    assert net(torch.ones(1, 2)).tolist() == before
    assert torch.compile(net, backend="inductor") is net

    @torch.compile(dynamic=True)
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
