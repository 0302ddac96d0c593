# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""fake_quantize_per_tensor_affine and ..._per_channel_affine, against PyTorch's."""

import numpy as np
import pytest
import torch_peer
from torch_peer import assert_close

import holdfast

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")
peer = torch_peer.torch
VALUES = np.linspace(-2, 2, 60).reshape(3, 4, 5).astype(np.float32)
BOTH = (holdfast, peer)


def assert_alike(quantize):
    """quantize(torch, x) and its gradient."""
    results = []
    for torch in BOTH:
        x = torch.tensor(VALUES, requires_grad=True)
        y = quantize(torch, x)
        (y * torch.tensor(VALUES)).sum().backward()
        results.append((y.detach(), x.grad))
    for ours, theirs in zip(*results):
        assert_close(ours, theirs)
    gradient = results[0][1]
    assert (gradient == 0).any() and (gradient != 0).any()


@pytest.mark.parametrize("low, high", [(-8, 7), (0, 10), (-3, 3)])
def test_per_tensor(low, high):
    assert_alike(
        lambda torch, x: torch.fake_quantize_per_tensor_affine(x, 0.13, 2, low, high)
    )
    assert_alike(
        lambda torch, x: torch.fake_quantize_per_tensor_affine(
            x, torch.tensor([0.13]), torch.tensor([2], dtype=torch.int32), low, high
        )
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel(axis):
    size = VALUES.shape[axis]

    def quantize(torch, x):
        scale = torch.tensor(np.linspace(0.1, 0.3, size).astype(np.float32))
        zero_point = torch.arange(size, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(x, scale, zero_point, axis, -5, 5)

    assert_alike(quantize)


def test_bad_arguments():
    x = holdfast.tensor(VALUES)
    with pytest.raises(RuntimeError, match="Got 7 and -8"):
        holdfast.fake_quantize_per_tensor_affine(x, 0.1, 0, 7, -8)
    with pytest.raises(RuntimeError, match=r"Got \[4\] and \[3, 4, 5\]"):
        holdfast.fake_quantize_per_channel_affine(
            x, holdfast.ones(4), holdfast.zeros(4), 0, -8, 7
        )
