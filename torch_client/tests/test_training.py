# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Unmodified PyTorch on the daemon: what a program sees first."""

import pytest
import torch


def losses(device, optimizer, steps=20):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    )
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    step = optimizer(model.parameters(), lr=0.05)
    found = []
    for _ in range(steps):
        step.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        step.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_a_training_as_on_the_cpu(device, optimizer):
    ours, theirs = losses(device, optimizer), losses("cpu", optimizer)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours[-1] < ours[0]


def test_writes_through_views(device):
    x = torch.zeros(3, 4, device=device)
    x.t()[1:3].add_(2)
    x[0].fill_(7)
    expected = torch.zeros(3, 4)
    expected.t()[1:3].add_(2)
    expected[0].fill_(7)
    assert torch.equal(x.cpu(), expected)
    assert x.view(-1).data_ptr() == x.data_ptr() != 0


def test_a_stray_pointer_shows_nothing(device):
    a, b = torch.ones(8, device=device), torch.ones(8, device=device)
    assert a.data_ptr() != b.data_ptr()
    with pytest.raises((RuntimeError, TypeError), match="holdfast|device"):
        a.numpy()


def test_devices_do_not_mix(device):
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=device) + torch.ones(2)
    assert (torch.ones(2, device=device) + torch.tensor(2.0)).tolist() == [3.0, 3.0]
