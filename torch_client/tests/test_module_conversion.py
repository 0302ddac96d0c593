# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Module.to keeps parameters what they are, as with every device of PyTorch's own."""

import torch


def tied():
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    second.weight = first.weight
    return torch.nn.Sequential(first, second)


def test_shared_weights_stay_shared(device):
    model = tied()
    weight = model[0].weight
    model.to(device)
    assert model[0].weight is weight is model[1].weight
    assert weight.device.type == device and len(list(model.parameters())) == 3
    model.cpu()
    assert model[0].weight is weight is model[1].weight
    assert weight.device.type == "cpu"


def test_an_optimizer_made_before_has_the_same_parameters(device):
    torch.manual_seed(0)
    found = []
    for place in ("cpu", device):
        torch.manual_seed(0)
        model = tied()
        step = torch.optim.SGD(model.parameters(), lr=0.1)
        model.to(place)
        model(torch.ones(2, 3, device=place)).sum().backward()
        step.step()
        found.append([p.detach().cpu() for p in model.parameters()])
    for one, other in zip(*found):
        assert torch.allclose(one, other, atol=1e-6)


def test_gradients_move_too(device):
    model = tied()
    model(torch.ones(2, 3)).sum().backward()
    expected = model[0].weight.grad.clone()
    model.to(device)
    grad = model[0].weight.grad
    assert grad.device.type == device and torch.equal(grad.cpu(), expected)
    model(torch.ones(2, 3, device=device)).sum().backward()
    assert torch.allclose(model[0].weight.grad.cpu(), 2 * expected)
