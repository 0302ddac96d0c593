# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every op case on the second of a daemon's GPUs (two of server/fake_device, which
refuse each other's memory): results and gradients have the bits that they have on
"cpu", and are where their inputs are, whatever constants a function makes inside."""

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast

# What writes to a tensor of its own making, and what says where to.
ELSEWHERE = ("copy", "to_device")

FORWARD = [pytest.param(c, id=c.name) for c in CASES if not c.random]
GRADIENT = [pytest.param(c, id=c.name) for c in CASES if c.grad]


FAKE_GPU = {"HOLDFAST_FAKE_LAG_US": "0"}


@pytest.fixture(scope="module")
def session(two_gpus):
    with holdfast.connect(two_gpus.shm_address, default=False) as session:
        yield session


@pytest.fixture
def torch(session):
    holdfast.set_default_session(session)
    holdfast.manual_seed(0)
    return holdfast


def tensors_of(result):
    if isinstance(result, holdfast.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in tensors_of(part)]
    return []


def run(torch, case, arrays, device, grad=()):
    inputs = [torch.tensor(a, device=device) for a in arrays]
    for i in grad:
        inputs[i].requires_grad_()
    results = tensors_of(case.ours(torch, *inputs))
    if not grad:
        return results
    loss = sum((r.abs() * 0.7 + r.real).sum() for r in results if r.requires_grad)
    loss.backward()
    return [inputs[i].grad for i in grad if inputs[i].grad is not None]


def compare(torch, case, **options):
    arrays = case.arrays()
    expected = run(torch, case, arrays, "cpu", **options)
    got = run(torch, case, arrays, "cuda:1", **options)
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        if arrays and case.op not in ELSEWHERE:
            assert str(mine.device) == "cuda:1"
        assert mine.dtype is theirs.dtype and mine.shape == theirs.shape
        np.testing.assert_array_equal(
            mine.detach().resolve_conj().cpu().numpy(),
            theirs.detach().resolve_conj().numpy(),
        )


@pytest.mark.parametrize("case", FORWARD)
def test_forward(torch, case):
    compare(torch, case)


@pytest.mark.parametrize("case", GRADIENT)
def test_gradient(torch, case):
    compare(torch, case, grad=case.grad)
