# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks of state_dict and load_state_dict, and the versions beside the entries."""

import copy
import io
import pickle
from collections import OrderedDict

import pytest


def net(torch):
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))


def test_versions_are_told_beside_the_entries(torch):
    state = net(torch).state_dict()
    assert state._metadata == OrderedDict(
        [("", {"version": 1}), ("0", {"version": 1}), ("1", {"version": 2})]
    )
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    assert torch.load(file)._metadata == state._metadata


def test_a_module_sees_the_version_of_what_it_loads(torch):
    seen = []

    class Layer(torch.nn.Linear):
        _version = 7

        def _load_from_state_dict(self, state_dict, prefix, metadata, *others):
            seen.append((prefix, metadata.get("version")))
            super()._load_from_state_dict(state_dict, prefix, metadata, *others)

    model = torch.nn.Sequential(Layer(2, 2))
    model.load_state_dict(model.state_dict())
    model.load_state_dict(dict(model.state_dict()))
    assert seen == [("0.", 7), ("0.", None)]


def test_hooks_of_state_dict(torch):
    model, calls = net(torch), []
    model[0].register_state_dict_pre_hook(
        lambda module, prefix, keep: calls.append((module, prefix, keep))
    )
    handle = model[0]._register_state_dict_hook(
        lambda module, state, prefix, metadata: state.__delitem__(prefix + "bias")
    )
    assert "0.bias" not in model.state_dict() and "0.weight" in model.state_dict()
    handle.remove()
    assert "0.bias" in model.state_dict(keep_vars=True)
    assert calls[-1] == (model[0], "0.", True)
    model._register_state_dict_hook(lambda *args: {"all": 1})
    assert model.state_dict() == {"all": 1}


def test_hooks_rename_what_is_loaded(torch):
    model = net(torch)
    state = OrderedDict(
        (k.replace("0.weight", "0.w"), v + 1) for k, v in model.state_dict().items()
    )

    def rename(state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "weight"] = state.pop(prefix + "w")

    handle = model[0]._register_load_state_dict_pre_hook(rename)
    model.load_state_dict(state)
    assert torch.equal(model[0].weight, state["0.w"])
    handle.remove()
    with pytest.raises(RuntimeError, match='Missing key.*"0.weight"'):
        model.load_state_dict(state)
    model[0].register_load_state_dict_pre_hook(
        lambda module, *others: rename(*others) or calls.append(module)
    )
    calls = []
    model.load_state_dict(state)
    assert calls == [model[0]]


def test_hooks_after_loading_may_forgive(torch):
    model, order = net(torch), []
    state = model.state_dict()
    del state["1.running_var"]

    def forgive(module, keys):
        order.append(module)
        keys.missing_keys.clear()

    model[1].register_load_state_dict_post_hook(forgive)
    model.register_load_state_dict_post_hook(lambda m, keys: order.append(m))
    assert model.load_state_dict(state).missing_keys == []
    assert order == [model[1], model]


def test_the_old_order_of_arguments(torch):
    class Old(torch.nn.Linear):
        def state_dict(self, destination=None, prefix="", keep_vars=False):
            return super().state_dict(destination, prefix, keep_vars)

    model = torch.nn.Sequential(Old(2, 2))
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    into = OrderedDict()
    assert model.state_dict(into, "a.") is into
    assert list(into) == ["a.0.weight", "a.0.bias"]


def test_modules_of_earlier_versions_are_read(torch):
    model = net(torch)
    state = model.__getstate__()
    for name in [n for n in state if "state_dict" in n]:
        del state[name]
    old = object.__new__(type(model))
    old.__setstate__(copy.copy(state))
    assert list(old.state_dict()) == list(model.state_dict())
    again = pickle.loads(pickle.dumps(model))
    assert list(again.state_dict()) == list(model.state_dict())


def test_norms_of_old_files_count_from_zero(torch):
    model = net(torch)
    state = dict(model.state_dict())  # without versions
    del state["1.num_batches_tracked"]
    model.load_state_dict(state)
    assert model[1].num_batches_tracked.item() == 0
    state = model.state_dict()
    del state["1.num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        model.load_state_dict(state)
