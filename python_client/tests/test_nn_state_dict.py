# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""load_state_dict: what it copies, and what it says when it does not fit."""

from collections import OrderedDict

import pytest

import holdfast
from holdfast import nn

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def make():
    return nn.Sequential(
        OrderedDict(body=nn.Linear(2, 3), norm=nn.BatchNorm1d(3), out=nn.Linear(3, 1))
    )


def test_round_trip():
    one, two = make(), make()
    result = two.load_state_dict(one.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    for key, value in one.state_dict().items():
        assert holdfast.equal(two.state_dict()[key], value)
    assert two.body.weight is not one.body.weight
    assert two.body.weight.requires_grad


def test_state_dict_shares_storage_and_load_copies():
    model = make()
    state = model.state_dict()
    with holdfast.no_grad():
        model.out.bias.fill_(5)
    assert state["out.bias"].tolist() == [5]
    other = make()
    other.load_state_dict(state)
    with holdfast.no_grad():
        model.out.bias.fill_(6)
    assert other.out.bias.tolist() == [5]


def test_keep_vars_and_prefix():
    model = make()
    state = model.state_dict(prefix="net.", keep_vars=True)
    assert state["net.body.weight"] is model.body.weight


def test_missing_and_unexpected_keys():
    model = make()
    state = model.state_dict()
    del state["body.bias"], state["norm.running_mean"]
    state["extra"] = holdfast.ones(1)
    state["out.weight.more"] = holdfast.ones(1)
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\t")
    assert 'Missing key(s) in state_dict: "body.bias", "norm.running_mean". ' in text
    assert "Unexpected key(s) in state_dict: " in text
    assert '"extra"' in text and '"out.weight.more"' in text
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == ["body.bias", "norm.running_mean"]
    assert sorted(result.unexpected_keys) == ["extra", "out.weight.more"]


def test_size_mismatch_names_both_shapes():
    model = make()
    state = model.state_dict()
    state["body.weight"] = holdfast.ones(3, 4)
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    assert "size mismatch for body.weight: copying a param with shape" in str(
        caught.value
    )
    assert "[3, 4]" in str(caught.value) and "[3, 2]" in str(caught.value)


def test_wrong_kinds():
    with pytest.raises(TypeError, match="dict-like"):
        make().load_state_dict([1])
    state = make().state_dict()
    state["body.bias"] = [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match='parameter named "body.bias", expected'):
        make().load_state_dict(state)


def test_other_dtypes_are_converted():
    model = make()
    state = {
        k: v.double() if v.is_floating_point() else v
        for k, v in make().state_dict().items()
    }
    model.load_state_dict(state)
    assert model.body.weight.dtype == holdfast.float32
    assert holdfast.equal(model.body.weight, state["body.weight"].float())


def test_assign_takes_the_tensors():
    model = make()
    state = {k: v.clone() for k, v in make().state_dict().items()}
    model.load_state_dict(state, assign=True)
    assert isinstance(model.body.weight, nn.Parameter)
    state["body.weight"].fill_(3)
    assert model.body.weight.sum().item() == 18


def test_extra_state():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one, two = Counter(), Counter()
    one.count = 4
    state = nn.Sequential(one).state_dict()
    assert list(state) == ["0._extra_state"]
    nn.Sequential(two).load_state_dict(state)
    assert two.count == 4
    with pytest.raises(RuntimeError, match="Unexpected key"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.Sequential(two).load_state_dict({})
