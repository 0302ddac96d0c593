# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizers that are newer than PyTorch 1.13, and SparseAdam.

The figures are PyTorch 2.15's, on a CPU, of the same steps in float64:

    p = nn.Parameter(start(shape)); o = make([p])
    for k in range(3):
        p.grad = (start(shape) * (k + 1) + p.detach() * 0.1).cos(); o.step()
"""

import numpy as np
import pytest

from torch_peer import torch as peer


def start(torch, shape):
    numbers = torch.arange(int(np.prod(shape)), dtype=torch.float64)
    return (numbers * 0.37).sin().reshape(shape)


def after_three_steps(torch, make, shape):
    p = torch.nn.Parameter(start(torch, shape))
    optimizer = make([p])
    for k in range(3):
        p.grad = (start(torch, shape) * (k + 1) + p.detach() * 0.1).cos()
        optimizer.step()
    return p.detach().flatten().tolist(), optimizer


# Of Muon's steps in bfloat16 the last digits are the library's.
MUON = [
    (
        {},
        (3, 2),
        [-0.165755392, 0.204559965, 0.44258158, 1.069167828, 1.029688595, 0.908961806],
    ),
    (
        {"adjust_lr_fn": "match_rms_adamw", "nesterov": False, "weight_decay": 0.0},
        (2, 3),
        [-0.053111714, 0.314998908, 0.670176617, 0.861040755, 1.044831577, 0.961241374],
    ),
    (
        {"adjust_lr_fn": "spectral_unclamped"},
        (2, 3),
        [-0.136804847, 0.255783636, 0.679903942, 0.824815, 1.055300466, 0.982188337],
    ),
]


@pytest.mark.parametrize("options, shape, expected", MUON)
def test_muon(torch, options, shape, expected):
    found, _ = after_three_steps(
        torch, lambda p: torch.optim.Muon(p, lr=0.1, **options), shape
    )
    assert found == pytest.approx(expected, abs=1e-2)


def test_muon_refuses_what_pytorch_refuses(torch):
    vector = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match="only supports 2D parameters"):
        torch.optim.Muon([vector])
    matrix = torch.nn.Parameter(torch.ones(2, 2))
    with pytest.raises(ValueError, match="Adjust learning rate function no"):
        torch.optim.Muon([matrix], adjust_lr_fn="no")
    with pytest.raises(ValueError, match="momentum should be >= 0 but is: -1"):
        torch.optim.Muon([matrix], momentum=-1)


ADAFACTOR = [
    (
        {"lr": 0.1},
        (3, 2),
        [-0.208226089, 0.193997841, 0.619323169, 0.975428107, 1.07206633, 1.032415197],
    ),
    (
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "d": 2.0},
        (4,),
        [0.183030298, 0.50340541, 0.667583167, 0.79635181],
    ),
    (
        {"eps": (1e-6, 1e-2), "beta2_decay": -0.5},
        (2, 2, 2),
        [-0.021787674, 0.343906082, 0.669009541, 0.905557942]
        + [1.004109278, 0.969131284, 0.800310082, 0.511267662],
    ),
]


@pytest.mark.parametrize("options, shape, expected", ADAFACTOR)
def test_adafactor(torch, options, shape, expected):
    found, optimizer = after_three_steps(
        torch, lambda p: torch.optim.Adafactor(p, **options), shape
    )
    assert found == pytest.approx(expected, abs=1e-8)
    (state,) = optimizer.state_dict()["state"].values()
    assert state["step"] == 3
    if len(shape) > 1:
        assert state["row_var"].shape == (*shape[:-1], 1)
        assert state["col_var"].shape == (*shape[:-2], 1, shape[-1])


def test_adafactor_goes_on_from_a_state(torch):
    make = torch.optim.Adafactor
    p = torch.nn.Parameter(start(torch, (3, 2)))
    first = make([p], lr=0.1)
    p.grad = torch.ones_like(p)
    first.step()
    q = torch.nn.Parameter(p.detach().clone())
    second = make([q], lr=0.1)
    second.load_state_dict(first.state_dict())
    for parameter, optimizer in ((p, first), (q, second)):
        parameter.grad = start(torch, (3, 2))
        optimizer.step()
    assert p.tolist() == q.tolist()


@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_adam_leaves_rows_alone(torch, maximize):
    """As PyTorch's on the sparse gradient of an Embedding."""
    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)
    results = []
    for library, tensor in ((torch, torch.tensor), (peer, peer.tensor)):
        table = library.nn.Embedding(6, 2, sparse=True)
        with library.no_grad():
            table.weight.copy_(tensor(weights))
        options = {"maximize": True} if maximize else {}
        optimizer = library.optim.SparseAdam(
            list(table.parameters()), lr=0.05, betas=(0.8, 0.9), **options
        )
        for rows in ([0, 2, 2], [2, 5], [1]):
            optimizer.zero_grad()
            (table(tensor(rows)) ** 2).sum().backward()
            optimizer.step()
        results.append(table.weight.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)
    assert results[0][3].tolist() == weights[3].tolist()
    assert results[0][5].tolist() != weights[5].tolist()
