# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What optimizers call around a step and around their state, and parameters by name, as
in PyTorch 2."""

import copy
import pickle

import pytest


def made(torch, kind=None, **options):
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    optimizer = (kind or torch.optim.SGD)([p], lr=0.5, **options)
    return p, optimizer


def test_hooks_are_called_around_a_step(torch):
    p, optimizer = made(torch)
    seen = []
    before = optimizer.register_step_pre_hook(
        lambda o, args, kwargs: seen.append(("pre", o is optimizer, p.tolist()))
    )
    after = optimizer.register_step_post_hook(
        lambda o, args, kwargs: seen.append(("post", len(args), kwargs, p.tolist()))
    )
    optimizer.step()
    assert seen == [("pre", True, [1, 1]), ("post", 1, {}, [0.5, 0.5])]
    before.remove()
    after.remove()
    optimizer.step()
    assert len(seen) == 2


def test_a_hook_may_change_the_arguments(torch):
    _, optimizer = made(torch)

    def closure():
        return torch.tensor(3.0)

    optimizer.register_step_pre_hook(
        lambda o, args, kwargs: ((args[0], closure), {}) if len(args) == 1 else None
    )
    assert optimizer.step().item() == 3
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_of_all_optimizers(torch):
    from holdfast.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    order = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: order.append("all, pre")),
        register_optimizer_step_post_hook(lambda o, a, k: order.append("all, post")),
    ]
    _, optimizer = made(torch, torch.optim.AdamW)
    optimizer.register_step_pre_hook(lambda o, a, k: order.append("own, pre"))
    optimizer.register_step_post_hook(lambda o, a, k: order.append("own, post"))
    optimizer.step()
    assert order == ["all, pre", "own, pre", "own, post", "all, post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert order[4:] == ["own, pre", "own, post"]


def test_a_programs_own_optimizer_has_them(torch):
    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    _, optimizer = made(torch, Own)
    seen = []
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(1))
    optimizer.step()
    assert seen == [1]


def test_hooks_around_a_state(torch):
    p, optimizer = made(torch, momentum=0.9)
    optimizer.step()
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 7})
    state = optimizer.state_dict()
    assert seen == ["saving"] and state["more"] == 7
    other = made(torch, momentum=0.9)[1]
    other.register_load_state_dict_pre_hook(
        lambda o, s: {**s, "param_groups": [{**s["param_groups"][0], "lr": 0.25}]}
    )
    other.register_load_state_dict_post_hook(
        lambda o: seen.append(o.param_groups[0]["lr"])
    )
    other.load_state_dict(state)
    assert seen == ["saving", 0.25]
    (own,) = other.state.values()
    assert own["momentum_buffer"].tolist() == [1, 1]


def test_prepended_hooks_come_first(torch):
    _, optimizer = made(torch)
    order = []
    for name, prepend in (("a", False), ("b", True)):
        optimizer.register_state_dict_pre_hook(
            lambda o, name=name: order.append(name), prepend=prepend
        )
    optimizer.state_dict()
    assert order == ["b", "a"]


def test_copies_can_have_hooks(torch):
    optimizer = made(torch)[1]
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        seen = []
        copied.register_step_post_hook(lambda o, a, k: seen.append(1))
        copied.step()
        assert seen == [1]


def test_parameters_by_name(torch):
    net = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(net.named_parameters(), lr=0.1)
    (group,) = optimizer.param_groups
    assert group["param_names"] == ["weight", "bias"]
    assert group["params"][0] is net.weight
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert state["param_groups"][0]["param_names"] == ["weight", "bias"]
    unnamed = copy.deepcopy(state)
    del unnamed["param_groups"][0]["param_names"]
    optimizer.load_state_dict(unnamed)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    unnamed["param_groups"][0]["param_names"] = ["a", "b"]
    optimizer.load_state_dict(unnamed)
    assert optimizer.param_groups[0]["param_names"] == ["a", "b"]


def test_groups_by_name(torch):
    net = torch.nn.Linear(2, 3)
    named = dict(net.named_parameters())
    optimizer = torch.optim.SGD(
        [{"params": [("weight", named["weight"])], "lr": 0.5}], lr=0.1
    )
    with pytest.raises(ValueError, match="without names to the optimizer"):
        optimizer.add_param_group({"params": [named["bias"]]})
    optimizer.add_param_group({"params": [("bias", named["bias"])]})
    assert [g["param_names"] for g in optimizer.param_groups] == [["weight"], ["bias"]]
    with pytest.raises(ValueError, match="Some param names are missing"):
        torch.optim.SGD([("weight", named["weight"]), named["bias"]], lr=0.1)
