# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizers: against formulas in NumPy, one message a step, state, errors."""

import copy

import numpy as np
import pytest

import holdfast
from holdfast import nn, optim

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

STEPS = 100


def sgd_reference(
    x,
    gradient,
    steps,
    lr,
    momentum=0,
    dampening=0,
    weight_decay=0,
    nesterov=False,
    maximize=False,
):
    x, buffer = x.astype("float64"), None
    for _ in range(steps):
        g = gradient(x) * (-1 if maximize else 1) + weight_decay * x
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        x = x - lr * g
    return x


def adam_reference(
    x,
    gradient,
    steps,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    maximize=False,
    decoupled=False,
):
    x = x.astype("float64")
    m = v = np.zeros_like(x)
    for step in range(1, steps + 1):
        g = gradient(x) * (-1 if maximize else 1)
        if decoupled:
            x = x * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        m_hat, v_hat = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
        x = x - lr * m_hat / (np.sqrt(v_hat) + eps)
    return x


def adamw_reference(x, gradient, steps, weight_decay=1e-2, **options):
    return adam_reference(
        x, gradient, steps, weight_decay=weight_decay, decoupled=True, **options
    )


CASES = [
    (optim.SGD, sgd_reference, {"lr": 0.05}),
    (optim.SGD, sgd_reference, {"lr": 0.05, "weight_decay": 0.1}),
    (optim.SGD, sgd_reference, {"lr": 0.02, "momentum": 0.9}),
    (optim.SGD, sgd_reference, {"lr": 0.02, "momentum": 0.9, "dampening": 0.3}),
    (
        optim.SGD,
        sgd_reference,
        {"lr": 0.02, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
    ),
    (optim.SGD, sgd_reference, {"lr": 0.001, "momentum": 0.5, "maximize": True}),
    (optim.Adam, adam_reference, {}),
    (optim.Adam, adam_reference, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-4}),
    (optim.Adam, adam_reference, {"lr": 0.02, "weight_decay": 0.1}),
    (optim.Adam, adam_reference, {"lr": 0.002, "maximize": True}),
    (optim.AdamW, adamw_reference, {}),
    (optim.AdamW, adamw_reference, {"lr": 0.03, "weight_decay": 0.2}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "make,reference,options", CASES, ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_hundred_steps_follow_the_formula(make, reference, options, dtype):
    scale = np.linspace(0.3, 2, 12).reshape(3, 4)
    start = np.linspace(-1, 2, 12).reshape(3, 4)
    expected = reference(start, lambda x: scale * (x - 0.5), STEPS, **options)
    first = nn.Parameter(holdfast.tensor(start.astype(dtype)))
    second = nn.Parameter(holdfast.tensor(start[0].astype(dtype)))
    weights = holdfast.tensor(scale.astype(dtype))
    optimizer = make([first, second], **options)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (weights * (first - 0.5) ** 2).sum() / 2
        (loss + (weights[0] * (second - 0.5) ** 2).sum() / 2).backward()
        optimizer.step()
    tolerance = 2e-6 if dtype == "float32" else 1e-12
    for ours, theirs in [(first, expected), (second, expected[0])]:
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs, rtol=tolerance, atol=tolerance
        )


def quadratic(*sizes):
    parameters = [nn.Parameter(holdfast.ones(size)) for size in sizes]

    def backward(chosen=None):
        for parameter in parameters if chosen is None else chosen:
            (parameter**2).sum().backward()

    return parameters, backward


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_a_step_is_one_op_per_group(make, monkeypatch):
    name = make.__name__.lower()
    module = __import__(f"holdfast.optim.{name}", fromlist=["_ops"])
    calls = []

    class Counting:
        def __getattr__(self, op):
            def call(params, *lists, **options):
                calls.append((op, len(params)))
                return getattr(holdfast._C.ops, op)(params, *lists, **options)

            return call

    monkeypatch.setattr(module, "_ops", Counting())
    (a, b, c), backward = quadratic(2, 3, 4)
    optimizer = make([{"params": [a, b]}, {"params": [c]}], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        backward()
        optimizer.step()
    assert calls == [(name, 2), (name, 1)] * 3


@pytest.mark.parametrize(
    "make", [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p)]
)
def test_parameters_that_join_late_have_their_own_history(make):
    (a, b), backward = quadratic(2, 2)
    (c,), backward_alone = quadratic(2)
    both, alone = make([a, b]), make([c])
    for step in range(6):
        both.zero_grad()
        # b has no gradient in every third step.
        backward([a] if step % 3 == 0 else None)
        both.step()
        if step % 3:
            alone.zero_grad()
            backward_alone()
            alone.step()
    np.testing.assert_allclose(b.tolist(), c.tolist(), rtol=1e-6)
    assert a.tolist() != b.tolist()


def test_no_gradients_no_change():
    (a,), _ = quadratic(3)
    optimizer = optim.Adam([a])
    optimizer.step()
    assert a.tolist() == [1, 1, 1] and not optimizer.state


def test_groups_have_their_own_options():
    (a, b), backward = quadratic(1, 1)
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    backward()
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.8, 0.0], atol=1e-7)
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.8, -1.0], atol=1e-7)


def test_closure():
    (a,), _ = quadratic(1)
    optimizer = optim.SGD([a], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (a**2).sum()
        loss.backward()
        return loss

    with holdfast.no_grad():
        assert optimizer.step(closure).item() == 1
    assert a.item() == 0.5


def test_zero_grad():
    (a,), backward = quadratic(2)
    optimizer = optim.SGD([a], lr=0.1)
    backward()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert a.grad is None


@pytest.mark.parametrize(
    "make,keys",
    [
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), {"momentum_buffer"}),
        (lambda p: optim.Adam(p, lr=0.1), {"step", "exp_avg", "exp_avg_sq"}),
    ],
)
def test_state_dict_goes_on_where_it_was(make, keys):
    (a, b), backward = quadratic(2, 3)
    optimizer = make([{"params": [a]}, {"params": [b], "lr": 0.05}])
    for _ in range(3):
        optimizer.zero_grad()
        backward()
        optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    assert sorted(state["state"]) == [0, 1]
    assert set(state["state"][0]) == keys
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]]
    assert [g["lr"] for g in state["param_groups"]] == [0.1, 0.05]

    twins = [nn.Parameter(p.detach().clone()) for p in (a, b)]
    other = make([{"params": [twins[0]]}, {"params": [twins[1]]}])
    other.load_state_dict(state)
    assert other.param_groups[1]["lr"] == 0.05
    for _ in range(3):
        for chosen, parameters in ((optimizer, (a, b)), (other, twins)):
            chosen.zero_grad()
            for parameter in parameters:
                (parameter**2).sum().backward()
            chosen.step()
    for parameter, twin in zip((a, b), twins):
        assert parameter.tolist() == twin.tolist()


def test_pytorchs_step_tensor_is_accepted():
    (a,), backward = quadratic(2)
    optimizer = optim.Adam([a])
    state = optimizer.state_dict()
    state["state"] = {
        0: {
            "step": holdfast.tensor(7.0),
            "exp_avg": holdfast.zeros(2),
            "exp_avg_sq": holdfast.zeros(2),
        }
    }
    optimizer.load_state_dict(state)
    backward()
    optimizer.step()
    assert optimizer.state[a]["step"] == 8


def test_load_state_dict_that_does_not_fit():
    (a, b), _ = quadratic(1, 1)
    optimizer = optim.SGD([a, b], lr=0.1)
    state = optim.SGD([a], lr=0.1).state_dict()
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict(state)
    state["param_groups"] = []
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict(state)


def test_repr():
    (a,), _ = quadratic(1)
    text = repr(optim.SGD([a], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.1\n" in text


@pytest.mark.parametrize(
    "make,error,text",
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda p: optim.SGD(p, lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD(p, lr=1, momentum=-1), ValueError, "momentum value: -1"),
        (lambda p: optim.SGD(p, 1, weight_decay=-1), ValueError, "weight_decay"),
        (
            lambda p: optim.SGD(p, lr=1, nesterov=True),
            ValueError,
            "Nesterov momentum requires",
        ),
        (lambda p: optim.Adam(p, eps=-1), ValueError, "Invalid epsilon value: -1"),
        (
            lambda p: optim.Adam(p, betas=(0.9, 1.0)),
            ValueError,
            "beta parameter at index 1: 1.0",
        ),
        (lambda p: optim.Adam(p[0]), TypeError, "iterable of Tensors"),
        (lambda p: optim.Adam(["w"]), TypeError, "can only optimize Tensors"),
        (lambda p: optim.Adam([p[0] * 2]), ValueError, "non-leaf Tensor"),
        (
            lambda p: optim.Adam([{"params": p}, {"params": p}]),
            ValueError,
            "more than one parameter group",
        ),
        (lambda p: optim.Adam([{"params": set(p)}]), TypeError, "ordered collections"),
        (lambda p: optim.SGD1, NotImplementedError, "no torch.optim.SGD1"),
    ],
)
def test_mistakes(make, error, text):
    parameters, _ = quadratic(1)
    with pytest.raises(error, match=text):
        make(parameters)
