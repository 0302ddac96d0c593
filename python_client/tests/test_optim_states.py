# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""States of optimizers as releases of PyTorch from 1.5 to 2.15 write them."""

import copy

import numpy as np
import pytest

# Options of a group: what 1.5 (or the first release that had it) wrote, what was added
# later, and arguments that a checkpoint must not take from the optimizer it goes to.
OPTIMIZERS = {
    "SGD": ("lr momentum dampening weight_decay nesterov", dict(lr=0.1, momentum=0.5)),
    "Adam": ("lr betas eps weight_decay amsgrad", dict(lr=0.1)),
    "AdamW": ("lr betas eps weight_decay amsgrad", dict(lr=0.1)),
    "Adagrad": ("lr lr_decay eps weight_decay initial_accumulator_value", dict(lr=0.1)),
    "Adadelta": ("lr rho eps weight_decay", dict(lr=0.5)),
    "Adamax": ("lr betas eps weight_decay", dict(lr=0.1)),
    "ASGD": ("lr lambd alpha t0 weight_decay", dict(lr=0.1, t0=2)),
    "RMSprop": ("lr momentum alpha eps centered weight_decay", dict(lr=0.1)),
    "Rprop": ("lr etas step_sizes", dict(lr=0.1)),
    "NAdam": ("lr betas eps weight_decay momentum_decay", dict(lr=0.1)),
    "RAdam": ("lr betas eps weight_decay", dict(lr=0.1)),
}
ADDED = {
    "maximize": False,
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    "fused": None,
    "decoupled_weight_decay": False,
}
SCALARS = ("step", "eta", "mu", "mu_product")


def problem(torch, name, options):
    w = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    return w, getattr(torch.optim, name)([w], **options)


def steps(torch, w, optimizer, count):
    for i in range(count):
        optimizer.zero_grad()
        (w * torch.tensor([1.0 + i, 0.5, -1.0]) + w * w).sum().backward()
        optimizer.step()
    return np.array(w.detach().tolist())


def as_written(torch, name, state, era):
    """The state as a release of that era writes it."""
    state = copy.deepcopy(state)
    first = OPTIMIZERS[name][0].split()
    for group in state["param_groups"]:
        for key in [k for k in group if k != "params" and k not in first]:
            del group[key]
        if era == "2.15":
            group.update(ADDED, decoupled_weight_decay=name == "AdamW")
    for row in state["state"].values():
        for key in SCALARS:
            if key in row:
                value = float(row[key])
                number = int(value) if key == "step" else value
                row[key] = number if era == "1.5" else torch.tensor(value)
    return state


@pytest.mark.parametrize("era", ["1.5", "1.13", "2.15"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_of_any_release_goes_on(torch, name, era):
    options = OPTIMIZERS[name][1]
    w, optimizer = problem(torch, name, options)
    steps(torch, w, optimizer, 3)
    state = as_written(torch, name, optimizer.state_dict(), era)
    other, fresh = problem(torch, name, dict(options, maximize=True))
    with torch.no_grad():
        other.copy_(w)
    fresh.load_state_dict(state)
    assert fresh.param_groups[0]["maximize"] is False  # PyTorch's default
    expected = steps(torch, w, optimizer, 3)
    assert np.allclose(steps(torch, other, fresh, 3), expected, rtol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pytorch_goes_on_with_ours_and_we_with_its(torch, name):
    theirs = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = OPTIMIZERS[name][1]
    for source, target in ((torch, theirs), (theirs, torch)):
        w, optimizer = problem(source, name, options)
        steps(source, w, optimizer, 3)
        state = plain(optimizer.state_dict())
        other, fresh = problem(target, name, options)
        with target.no_grad():
            other.copy_(target.tensor(w.tolist()))
        fresh.load_state_dict(tensors(target, state))
        ours = steps(target, other, fresh, 1)
        if name == "NAdam" and theirs.__version__ < "2":
            continue  # another correction there
        assert np.allclose(ours, steps(source, w, optimizer, 1), rtol=1e-4), name


def plain(value):
    """With lists for tensors, marked as such."""
    if hasattr(value, "tolist"):
        return ("tensor", value.tolist())
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def tensors(torch, value):
    if isinstance(value, tuple) and value[:1] == ("tensor",):
        return torch.tensor(value[1])
    if isinstance(value, dict):
        return {key: tensors(torch, item) for key, item in value.items()}
    return value
