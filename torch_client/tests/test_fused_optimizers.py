# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""optimizer(fused=True) on the daemon, against the CPU's single steps."""

import pytest
import torch

STEPS = {
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.05, weight_decay=0.1, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.05, **k),
    "maximized": lambda p, **k: torch.optim.AdamW(p, lr=0.05, maximize=True, **k),
    "momentum": lambda p, **k: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1, **k
    ),
    "dampened": lambda p, **k: torch.optim.SGD(
        p, lr=0.05, momentum=0.9, dampening=0.5, **k
    ),
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.05, **k),
    "tensor": lambda p, **k: torch.optim.Adam(p, lr=torch.tensor(0.05), **k),
}


def trained(place, make, scaler=None, **named):
    torch.manual_seed(0)
    layers = torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
    model = torch.nn.Sequential(*layers).to(place)
    optimizer = make(model.parameters(), **named)
    x = torch.randn(5, 3).to(place)
    for i in range(4):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if i == 2 and scaler is not None:
            loss = loss * float("inf")  # this step is left out
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
    return [p.detach().cpu() for p in model.parameters()], optimizer


@pytest.mark.parametrize("name", STEPS)
def test_as_single_steps(device, name):
    found, optimizer = trained(device, STEPS[name], fused=True)
    expected, _ = trained("cpu", STEPS[name], foreach=False)
    for one, other in zip(found, expected):
        assert torch.allclose(one, other, atol=1e-6)
    assert all(g["fused"] for g in optimizer.param_groups)


def test_parameters_of_different_age(device):
    found = []
    for place, named in (("cpu", {}), (device, {"fused": True})):
        torch.manual_seed(0)
        a, b = (torch.randn(3).to(place).requires_grad_() for _ in range(2))
        optimizer = torch.optim.AdamW([a, b], lr=0.1, **named)
        for i in range(3):
            optimizer.zero_grad()
            (a.sin().sum() + (b.cos().sum() if i else 0)).backward()
            optimizer.step()
        found.append(torch.stack([a.detach().cpu(), b.detach().cpu()]))
    assert torch.allclose(*found, atol=1e-6)


def test_amsgrad_is_refused(device):
    p = torch.ones(2, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([p], amsgrad=True, fused=True)
    p.sum().backward()
    with pytest.raises(NotImplementedError, match="fused=False"):
        optimizer.step()
