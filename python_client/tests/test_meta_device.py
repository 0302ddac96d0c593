# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The device "meta": sizes and types without data.

What is asserted is what PyTorch 2.15 says of the same lines."""

import warnings

import pytest


@pytest.fixture
def nn(torch):
    return torch.nn


def test_tensors_without_data(torch):
    x = torch.randn(2, 3, device="meta")
    assert x.is_meta and str(x.device) == "meta" and not (x.is_cpu or x.is_cuda)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    whole = torch.empty(2, dtype=torch.int64, device="meta")
    assert repr(whole) == (
        "tensor(..., device='meta', size=(2,), dtype=torch.int64)"
    ).replace("torch.", str(torch.int64).partition(".")[0] + ".")
    assert x.to("meta") is x and x.data_ptr() == 0
    assert x.untyped_storage().nbytes() == 24
    huge = torch.empty(1 << 20, 1 << 20, device="meta")  # four terabytes
    assert (huge @ huge[:, :3]).shape == (1 << 20, 3)


def test_results_have_sizes_types_and_strides(torch):
    x = torch.randn(2, 3, device="meta")
    assert (x + 1.0).device.type == "meta"
    assert torch.cat([x, x]).shape == (4, 3) and x[:, 1:].shape == (2, 2)
    assert x.argmax(1).dtype is torch.int64 and (x > 0).dtype is torch.bool
    assert torch.zeros_like(x).is_meta and x.new_ones(4).is_meta
    assert torch.empty_like(x, device="cpu").device.type == "cpu"
    assert torch.ones(3, 2).T.to("meta").stride() == (1, 2)
    assert torch.ones(3, 4)[:, ::2].to("meta").stride() == (2, 1)
    y = x.clone().requires_grad_()
    total = (y * 2).sum()
    assert total.requires_grad and total.grad_fn.name() == "SumBackward0"
    total.backward()
    assert y.grad.is_meta and y.grad.shape == (2, 3)
    with pytest.raises(RuntimeError, match="shapes|2, 3"):
        x @ x


def test_random_numbers_are_not_drawn(torch):
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    torch.rand(5, device="meta").uniform_()
    assert torch.rand(2).tolist() == expected


@pytest.mark.parametrize(
    "read",
    [
        lambda torch, x: x.tolist(),
        lambda torch, x: x.cpu(),
        lambda torch, x: x.numpy(),
        lambda torch, x: x[0, 0].item(),
        lambda torch, x: bool(x[0, 0] > 0),
        lambda torch, x: x.nonzero().tolist(),
        lambda torch, x: torch.save(x.to("cpu"), "never"),
    ],
)
def test_what_needs_data_is_refused(torch, read):
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        read(torch, torch.randn(2, 3, device="meta"))


def test_meta_and_other_tensors_do_not_mix(torch):
    x = torch.randn(2, 3, device="meta")
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu"):
        torch.ones(2, 3).copy_(x)
    # The session goes on.
    assert torch.ones(2).sum().item() == 2


def test_a_network_is_made_and_then_filled(torch, nn):
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Embedding(5, 2))
        assert torch.tensor([1.0]).is_meta and torch.arange(3).is_meta
    assert all(p.is_meta for p in net.parameters())
    assert sum(p.numel() for p in net.parameters()) == 34
    assert torch.ones(1).device.type == "cpu"
    with pytest.raises(NotImplementedError, match=r"torch.nn.Module.to_empty\(\)"):
        net.to("cpu")
    assert net.to_empty(device="cpu") is net
    assert {t.device.type for t in net.state_dict().values()} == {"cpu"}
    assert isinstance(net[0].weight, nn.Parameter) and net[0].weight.requires_grad
    net[0].reset_parameters()
    net[1].reset_running_stats()
    nn.init.ones_(net[1].weight)
    nn.init.zeros_(net[1].bias)
    assert net[:2](torch.randn(6, 3)).shape == (6, 4)


def test_to_empty_without_children_and_with_ties(torch, nn):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    net[0].to_empty(device="meta", recurse=False)
    net.to_empty(device="cpu", recurse=False)
    assert net[0].weight.is_meta and net[1].weight.is_meta
    net[1].weight = net[0].weight
    net.to_empty(device="cpu")
    assert net[1].weight is net[0].weight and not net[0].weight.is_meta


def test_a_state_is_assigned(torch, nn):
    state = nn.Linear(3, 4).state_dict()
    net = nn.Linear(3, 4, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        net.load_state_dict(state)
    assert net.weight.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.load_state_dict(state, assign=True)
    assert net.weight.tolist() == state["weight"].tolist()
    assert net.weight.requires_grad and net.weight.device.type == "cpu"
    assert net.to("meta").weight.is_meta
    assert net(torch.randn(7, 3, device="meta")).shape == (7, 4)
