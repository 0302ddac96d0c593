# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Every optimizer takes PyTorch's steps: 100 of them, to 1e-6."""

import numpy as np
import pytest

import holdfast
from torch_peer import torch as peer

STEPS = 100
CASES = [
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.01}),
    ("AdamW", {"lr": 0.05, "amsgrad": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.01}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {"lr": 0.7, "rho": 0.8, "weight_decay": 0.01}),
    ("Adamax", {"lr": 0.02, "weight_decay": 0.01}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.01}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("Rprop", {"lr": 0.01}),
    ("ASGD", {"lr": 0.05, "t0": 10, "weight_decay": 0.01}),
    ("LBFGS", {"lr": 0.5}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 3}),
]


def train(torch, name, options, steps=STEPS, state=None):
    """Least squares with a kink, two parameters, one without a gradient at times."""
    a = torch.tensor(np.linspace(-1, 2, 6).reshape(2, 3), requires_grad=True)
    b = torch.tensor(np.array([0.5, -0.5]), requires_grad=True)
    x = torch.tensor(np.cos(np.arange(15.0)).reshape(5, 3))
    y = torch.tensor(np.sin(np.arange(10.0)).reshape(5, 2))
    optimizer = getattr(torch.optim, name)([a, b], **options)
    if state is not None:
        optimizer.load_state_dict(state)

    def closure():
        optimizer.zero_grad()
        out = x @ a.t() + b
        loss = ((out - y) ** 2).mean() + 0.01 * a.abs().sum()
        loss.backward()
        return loss

    for step in range(3 if name == "LBFGS" else steps):
        if name == "LBFGS":
            optimizer.step(closure)
            continue
        closure()
        if step % 7 == 3:
            b.grad = None
        optimizer.step()
    return a.detach().numpy(), b.detach().numpy(), optimizer


@pytest.mark.parametrize("name, options", CASES, ids=[f"{n}{o}" for n, o in CASES])
def test_steps_are_pytorchs(torch, name, options):
    ours, theirs = train(torch, name, options), train(peer, name, options)
    for mine, other in zip(ours[:2], theirs[:2]):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)


def test_nadam(torch):
    """Against the paper's formula: PyTorch 1.13 multiplies by mu once too often,
    which later versions mended."""
    lr, beta1, beta2, eps, psi = 0.02, 0.9, 0.999, 1e-8, 4e-3
    p = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.NAdam([p], lr=lr, weight_decay=0.01)
    x, m, v, product = np.array([1.0, -2.0]), 0.0, 0.0, 1.0
    for t in range(1, STEPS + 1):
        optimizer.zero_grad()
        (p**4).sum().backward()
        optimizer.step()
        g = 4 * x**3 + 0.01 * x
        mu = beta1 * (1 - 0.5 * 0.96 ** (t * psi))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * psi))
        product *= mu
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        root = np.sqrt(v / (1 - beta2**t)) + eps
        ahead = mu_next * m / (1 - product * mu_next)
        x = x - lr * ((1 - mu) * g / (1 - product) + ahead) / root
    np.testing.assert_allclose(p.detach().numpy(), x, rtol=1e-6)


@pytest.mark.parametrize("name, options", CASES[:-2], ids=str)
def test_maximize_or_a_plain_step_in_float32(torch, name, options):
    if name in ("RAdam", "RMSprop", "Rprop", "ASGD", "Adadelta", "Adamax"):
        options = dict(options)  # PyTorch 1.13 has maximize for some of them only
    else:
        options = dict(options, maximize=True)
    p = torch.ones(3, requires_grad=True)
    q = peer.ones(3, requires_grad=True)
    for module, param in ((torch, p), (peer, q)):
        optimizer = getattr(module.optim, name)([param], **options)
        for _ in range(5):
            optimizer.zero_grad()
            (param * param).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(
        p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("name, options", CASES[:-2], ids=str)
def test_state_goes_on_where_it_was(torch, name, options):
    whole = train(torch, name, options, steps=6)
    half = train(torch, name, options, steps=6)[2].state_dict()
    fresh = train(torch, name, options, steps=0)[2]
    fresh.load_state_dict(half)
    state = fresh.state_dict()["state"]
    assert state.keys() == half["state"].keys()
    for i, values in half["state"].items():
        assert values.keys() == state[i].keys()
    assert whole[2].state_dict()["param_groups"] == half["param_groups"]


def test_a_step_is_one_message(torch):
    params = [torch.ones(3, requires_grad=True) for _ in range(20)]
    sum(p.sum() for p in params).backward()
    optimizer = torch.optim.RMSprop(params)
    optimizer.step()
    session = params[0]._session
    before = calls(session)
    optimizer.step()
    assert calls(session) - before == 1


def calls(session):
    from holdfast import _stats

    session.synchronize()
    ops = _stats.parse(session._stats())["ops"]
    return sum(op["calls"] for op in ops if op["name"] == "optimizer_step")


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("Adagrad", {"lr": -1}, "Invalid learning rate"),
        ("Adadelta", {"rho": 2}, "Invalid rho value"),
        ("RMSprop", {"momentum": -1}, "Invalid momentum value"),
        ("Rprop", {"etas": (2, 3)}, "Invalid eta values"),
        ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay"),
        ("RAdam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0"),
        ("Adamax", {"eps": -1}, "Invalid epsilon value"),
    ],
)
def test_bad_options(torch, name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(torch.optim, name)([torch.ones(1, requires_grad=True)], **options)


def test_lbfgs_refuses_groups_and_unknown_searches(torch):
    groups = [{"params": [torch.ones(1)]}, {"params": [torch.ones(1)]}]
    with pytest.raises(ValueError, match="parameter groups"):
        torch.optim.LBFGS(groups)
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        torch.optim.LBFGS([torch.ones(1)], line_search_fn="armijo")


def test_unknown_algorithms_are_refused(torch):
    p = torch.ones(2)
    lists = [[p], [p.clone()], [p.clone()], [p.clone()], [p.clone()]]
    with pytest.raises((RuntimeError, ValueError), match="no algorithm nonsense"):
        holdfast._C.ops.optimizer_step(*lists, algorithm="nonsense", step_size=0.1)
