# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What the CPU computes: only what is listed, and never silently."""

import warnings

import pytest
import torch
from holdfast_torch import fallback


def operator(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def gamma_gradient(device):
    shape = torch.tensor([0.5, 2.0, 7.0], device=device)
    sample = torch.tensor([0.4, 1.5, 8.0], device=device)
    return torch._standard_gamma_grad(shape, sample)


def test_a_listed_operator_warns_once(device):
    fallback._warned.clear()
    with pytest.warns(UserWarning, match="_standard_gamma_grad runs on the CPU"):
        ours = gamma_gradient(device)
    assert ours.device.type == "holdfast"
    torch.testing.assert_close(ours.cpu(), gamma_gradient("cpu"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gamma_gradient(device)


def test_a_listed_operator_may_be_forbidden(device, monkeypatch):
    monkeypatch.setenv("HOLDFAST_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="HOLDFAST_FALLBACK=error"):
        gamma_gradient(device)


def test_gradients_of_samples(device):
    shape = torch.tensor([0.5, 2.0], device=device, requires_grad=True)
    torch.distributions.Gamma(shape, torch.ones_like(shape)).rsample().sum().backward()
    assert torch.isfinite(shape.grad).all() and (shape.grad > 0).all()


def test_an_operator_without_a_kernel_is_refused(device):
    x = torch.ones(3, device=device)
    with pytest.raises(NotImplementedError, match="_to_sparse"):
        x.to_sparse()


def test_no_core_operator_is_listed():
    for name in fallback.LISTED:
        assert torch.Tag.core not in operator(name).tags, name


def test_core_operators_have_kernels_of_their_own():
    without = []
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        if torch.Tag.core not in operator(full[6:]).tags:
            continue
        has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
        if not has(full, "PrivateUse1"):
            without.append(full[6:])
    assert without == []
