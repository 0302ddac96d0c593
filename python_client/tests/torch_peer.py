# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Comparison with PyTorch in the same process, where it is installed."""

import numpy as np
import pytest

import holdfast

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def to_torch(tensor):
    """The same tensor in PyTorch, apart from the graph."""
    return torch.from_numpy(np.array(tensor.detach().numpy()))


def to_holdfast(tensor):
    """The same tensor in Holdfast, apart from the graph."""
    return holdfast.tensor(tensor.detach().numpy())


def leaves(arrays, count=None):
    """The arrays as tensors of both; the first `count` floating ones (all if
    None) require gradients."""
    ours = [holdfast.tensor(array) for array in arrays]
    theirs = [torch.from_numpy(np.array(array)) for array in arrays]
    for tensors in (ours, theirs):
        for tensor in tensors[:count]:
            if tensor.dtype.is_floating_point:
                tensor.requires_grad_()
    return ours, theirs


def assert_close(ours, theirs, rtol=1e-5, atol=1e-6):
    """Equal in shape, type and value."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol
    )


def assert_same_results(ours, theirs, our_inputs, their_inputs, **tolerance):
    """Same output, and same gradients of a weighted sum of it."""
    assert_close(ours, theirs, **tolerance)
    if not theirs.requires_grad:
        assert not ours.requires_grad
        return
    weights = np.linspace(-1, 1, ours.numel()).reshape(tuple(ours.shape))
    weights = weights.astype(str(theirs.dtype).split(".")[-1])
    (ours * holdfast.tensor(weights)).sum().backward()
    (theirs * torch.from_numpy(weights)).sum().backward()
    for our, their in zip(our_inputs, their_inputs):
        if their.grad is None:
            assert our.grad is None
        else:
            assert_close(our.grad, their.grad, **tolerance)
