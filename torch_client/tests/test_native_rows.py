# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Kernels in C++ and what they leave to those in Python; constants made late."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("value", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_a_filled_storage_seen_through_views(value, dtype):
    x = torch.empty(4, 6, dtype=dtype, device="holdfast").fill_(value)
    view = x[1:3, ::2]
    expected = torch.empty(4, 6, dtype=dtype).fill_(value)
    assert torch.equal(view.cpu(), expected[1:3, ::2])
    view.logical_not_()
    expected[1:3, ::2].logical_not_()
    assert torch.equal(x.cpu(), expected)
    assert torch.equal(x.zero_().cpu(), torch.zeros_like(expected))


def test_a_filled_storage_as_another_dtype():
    ones = torch.ones(6, device="holdfast")
    assert torch.equal(ones.view(torch.int32).cpu(), torch.ones(6).view(torch.int32))
    zeros = torch.zeros(4, dtype=torch.float64, device="holdfast")
    zeros.view(torch.int64)[1] = 1
    assert zeros.cpu().count_nonzero() == 1


def test_only_a_part_of_a_storage_is_filled():
    x = torch.empty(6, device="holdfast")
    x[:3].fill_(1)
    x[3:].fill_(0)
    assert x.cpu().tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("bias", [(5,), (3, 5), (1,), ()])
@pytest.mark.parametrize("numbers", [{}, {"beta": 0.5, "alpha": 2}, {"beta": 0}])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.int64])
def test_addmm_of_what_the_kernel_in_python_takes(bias, numbers, dtype):
    if dtype == torch.int64:
        numbers = {k: int(v) for k, v in numbers.items()}
    parts = [torch.arange(1, 1 + torch.Size(s).numel()) for s in (bias, (3, 4), (4, 5))]
    parts = [p.view(s).to(dtype) for p, s in zip(parts, (bias, (3, 4), (4, 5)))]
    found = torch.addmm(*(p.to("holdfast") for p in parts), **numbers)
    torch.testing.assert_close(found.cpu(), torch.addmm(*parts, **numbers))


def test_addmm_of_a_lazy_conjugate():
    a = torch.randn(3, 3, dtype=torch.complex64)
    bias = torch.randn(3, dtype=torch.complex64)
    here = a.to("holdfast")
    found = torch.addmm(bias.to("holdfast"), here.mH, here)
    torch.testing.assert_close(found.cpu(), torch.addmm(bias, a.mH, a))


def test_wrong_sizes_are_refused_as_pytorch_does():
    a, b = torch.ones(2, 3, device="holdfast"), torch.ones(4, 5, device="holdfast")
    with pytest.raises(RuntimeError):
        torch.addmm(torch.ones(5, device="holdfast"), a, b)
    with pytest.raises(RuntimeError):
        torch.nn.functional.layer_norm(a, (4,))
