# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Averages of weights (optim.swa_utils), against PyTorch's where it has them."""

import numpy as np
import pytest
import torch.optim.swa_utils  # noqa: F401
from torch_peer import to_torch, torch

import holdfast
from holdfast import nn
from holdfast.optim import SGD, swa_utils

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def models():
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )
    theirs.load_state_dict({k: to_torch(v) for k, v in ours.state_dict().items()})
    return ours, theirs


def move(model, seed):
    """Other weights and statistics, the same for both."""
    rng = np.random.default_rng(seed)
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            value = rng.uniform(0.5, 1.0, tuple(tensor.shape)).astype(np.float32)
            tensor.copy_(
                (torch if type(tensor) is torch.Tensor else holdfast).tensor(value)
            )


def same(ours, theirs):
    theirs = theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        np.testing.assert_allclose(
            tensor.numpy(), theirs[name].numpy(), rtol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("exponential", [False, True])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model(exponential, use_buffers):
    def ema(averaged, current, count):
        return 0.9 * averaged + 0.1 * current

    averages = [
        package.AveragedModel(model, avg_fn=ema if exponential else None)
        if not use_buffers
        else package.AveragedModel(
            model, avg_fn=ema if exponential else None, use_buffers=True
        )
        for package, model in zip((swa_utils, torch.optim.swa_utils), models())
    ]
    sources = models()
    for seed in range(4):
        for average, model in zip(averages, sources):
            move(model, seed)
            average.update_parameters(model)
    assert averages[0].n_averaged.item() == 4
    if not use_buffers:  # PyTorch 1.13 averages no statistics, nor copies them
        for average in averages:
            average.module[1].reset_running_stats()
    same(averages[0], averages[1])


def test_exponential_averages_of_lists():
    model, _ = models()
    mean = swa_utils.AveragedModel(
        model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.75)
    )
    mean.update_parameters(model)
    before = model[0].bias.detach().clone()
    move(model, 1)
    mean.update_parameters(model)
    expected = 0.75 * before + 0.25 * model[0].bias.detach()
    assert holdfast.allclose(mean.module[0].bias.detach(), expected)
    again = swa_utils.AveragedModel(model)
    again.load_state_dict(mean.state_dict())
    again.update_parameters(model)
    assert again.n_averaged.item() == 3


def test_update_bn():
    rng = np.random.default_rng(0)
    batches = [rng.normal(2, 3, (8, 3)).astype(np.float32) for _ in range(3)]
    ours, theirs = models()
    swa_utils.update_bn([(holdfast.tensor(b), None) for b in batches], ours)
    torch.optim.swa_utils.update_bn([(torch.tensor(b), None) for b in batches], theirs)
    same(ours, theirs)
    assert ours[1].momentum == 0.1


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_rates(strategy):
    model, _ = models()
    optimizer = SGD(model.parameters(), lr=1.0)
    schedule = swa_utils.SWALR(
        optimizer, 0.2, anneal_epochs=4, anneal_strategy=strategy
    )
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[0] == 1.0 and rates[2] == pytest.approx(0.6)
    assert rates[4] == rates[5] == pytest.approx(0.2)


def test_bad_arguments():
    model, _ = models()
    with pytest.raises(ValueError, match="decay must be between 0 and 1. Got 2"):
        swa_utils.get_ema_avg_fn(2)
    with pytest.raises(ValueError, match="a rate per group: 1. Got 2"):
        swa_utils.SWALR(SGD(model.parameters(), lr=1.0), [0.1, 0.2])
