# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors of the device as files, pickles, copies and text."""

import copy
import io
import pickle

import pytest
import torch

DTYPES = [
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64),
    *(torch.int8, torch.uint8, torch.bool, torch.complex64),
]


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_file_holds_the_elements(device, dtype):
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    file = saved(x.to(device))
    assert torch.equal(torch.load(file, map_location="cpu"), x)
    file.seek(0)
    back = torch.load(file)
    assert back.device.type == device and torch.equal(back.cpu(), x)


@pytest.mark.parametrize("where", ["holdfast", "holdfast:0", torch.device])
def test_a_file_of_the_cpu_goes_to_the_device(device, where):
    where = where(device) if where is torch.device else where
    x = torch.randn(3, 4)
    model = torch.nn.Linear(2, 3)
    left = torch.load(saved({"x": x.t(), "m": model.state_dict()}), map_location=where)
    assert left["x"].device == torch.device("holdfast:0")
    assert torch.equal(left["x"].cpu(), x.t()) and left["x"].stride() == (1, 4)
    assert torch.equal(left["m"]["weight"].cpu(), model.weight)
    (left["x"] + 1).sum().item()


def test_views_of_one_storage_stay_such(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    whole, turned = torch.load(saved([x, x.t()]))
    whole[0, 1] = 9
    assert turned[1, 0].item() == 9 and turned.stride() == (1, 3)


def test_a_training_is_saved_and_loaded(device):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(8, 4, device=device)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    undisturbed = [step(), step()]
    left = torch.load(file, map_location=device)
    model.load_state_dict(left["model"])
    optimizer.load_state_dict(left["optimizer"])
    assert [step(), step()] == undisturbed


def test_a_whole_module(device):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    model.to(device)
    back = torch.load(saved(model), weights_only=False)
    assert back[0].weight.device.type == device and back[0].weight.requires_grad
    assert torch.equal(back[0].weight.cpu(), model[0].weight.cpu())


def test_pickles_and_deep_copies(device):
    x = torch.arange(4.0, device=device)
    for back in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert back.device == x.device and back.tolist() == [0.0, 1.0, 2.0, 3.0]
    deep = copy.deepcopy([x, x[1:]])
    deep[0][1] = 7
    assert deep[1][0].item() == 7 and x[1].item() == 1
    parameter = torch.nn.Parameter(x)
    for back in (pickle.loads(pickle.dumps(parameter)), copy.deepcopy(parameter)):
        assert isinstance(back, torch.nn.Parameter) and back.requires_grad
        assert back.data_ptr() != parameter.data_ptr()


def test_storages(device):
    x = torch.arange(6.0, device=device)
    storage = x.untyped_storage()
    assert storage.nbytes() == 24 and storage.device == x.device
    assert bytes(storage.cpu().tolist()) == x.cpu().numpy().tobytes()
    assert x[2:].untyped_storage().data_ptr() == storage.data_ptr()
    empty = torch.empty(0, device=device)
    empty.set_(storage, 2, (2, 2), (2, 1))
    assert empty.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    empty.set_(storage)
    assert empty.tolist() == x.tolist()


def test_share_memory_keeps_the_tensor(device):
    x = torch.ones(3, device=device)
    assert x.share_memory_() is x and x.is_shared()
    model = torch.nn.Linear(2, 2).to(device).share_memory()
    assert model.weight.is_shared()


def test_printing(device):
    x = torch.tensor([[1.5, -2.0]], device=device)
    assert repr(x) == "tensor([[ 1.5000, -2.0000]], device='holdfast:0')"
    parameter = torch.nn.Parameter(x)
    assert "requires_grad=True" in repr(parameter)
    assert "device='holdfast:0'" in repr((parameter * 2).sum())
    assert repr(torch.empty(0, 3, device=device)).endswith("size=(0, 3))")
    large = torch.arange(2000, device=device)
    assert repr(large) == repr(large.cpu())[:-1] + ", device='holdfast:0')"
    assert f"{x[0, 0]:.2f}" == "1.50" and x.tolist() == [[1.5, -2.0]]
    assert repr(torch.tensor(2 + 1j, device=device)).startswith("tensor(2.+1.j")


def test_random_states(device):
    torch.manual_seed(3)
    state = torch.holdfast.get_rng_state()
    first = torch.rand(5, device=device)
    torch.holdfast.set_rng_state(state)
    assert torch.equal(torch.rand(5, device=device), first)
    with torch.random.fork_rng(device_type="holdfast"):
        torch.rand(5, device=device)
    torch.holdfast.manual_seed(3)
    assert torch.equal(torch.rand(5, device=device), first)
