# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Activations differentiate over their gradient's memory, unless somebody else
still has it."""

import numpy as np
import pytest

ACTIVATIONS = {
    "relu": lambda torch, x: torch.relu(x),
    "tanh": lambda torch, x: torch.tanh(x),
    "sigmoid": lambda torch, x: torch.sigmoid(x),
    "gelu": lambda torch, x: torch.nn.functional.gelu(x),
}


@pytest.fixture(params=ACTIVATIONS)
def activation(request, torch):
    return lambda x: ACTIVATIONS[request.param](torch, x)


def expected(torch, activation, x, g):
    """The gradient of activation(x) for the gradient g, by a graph that keeps
    everything."""
    leaf = x.detach().clone().requires_grad_()
    (grad,) = torch.autograd.grad(activation(leaf), leaf, g, create_graph=True)
    return grad.detach().numpy()


def test_a_chain_takes_one_gradients_memory(torch, activation):
    x = torch.randn(1 << 18, requires_grad=True)  # 1 MiB
    out = x * 1
    for _ in range(4):
        out = activation(out)
    loss = (out * 2).sum()
    del out
    torch.synchronize()
    torch.reset_peak_memory_stats()
    before = torch.memory_allocated()
    loss.backward()
    torch.synchronize()
    assert torch.max_memory_allocated() - before <= 1.1 * 2**20


def test_a_gradient_of_the_callers_stays(torch, activation):
    x = torch.randn(40, 30, requires_grad=True)
    g = torch.randn(40, 30)
    kept = g.numpy().copy()
    activation(x).backward(g)
    np.testing.assert_array_equal(g.numpy(), kept)
    np.testing.assert_allclose(x.grad, expected(torch, activation, x, g), 1e-5, 1e-6)


def test_a_gradient_seen_by_a_hook_stays(torch, activation):
    x = torch.randn(40, 30, requires_grad=True)
    seen = []
    out = activation(x)
    out.register_hook(seen.append)
    (out * 3).sum().backward()
    np.testing.assert_array_equal(seen[0].numpy(), np.full((40, 30), 3, "float32"))


def test_retained_and_asked_for_gradients_stay(torch, activation):
    x = torch.randn(40, 30, requires_grad=True)
    three = np.full((40, 30), 3, "float32")
    out = activation(x)
    out.retain_grad()
    (out * 3).sum().backward()
    np.testing.assert_array_equal(out.grad.numpy(), three)
    out = activation(x)
    grads = torch.autograd.grad((out * 3).sum(), [out, x])
    np.testing.assert_array_equal(grads[0].numpy(), three)


def test_a_gradient_that_goes_two_ways(torch, activation):
    x, y = (torch.randn(40, 30, requires_grad=True) for _ in range(2))
    g = torch.randn(40, 30)
    # add hands one gradient to both of its inputs, and view shows it again.
    (activation(x) + activation(y.view(30, 40)).view(40, 30)).backward(g)
    for leaf in (x, y):
        want = expected(torch, activation, leaf, g)
        np.testing.assert_allclose(leaf.grad, want, 1e-5, 1e-6)


def test_twice_over_one_graph(torch, activation):
    x = torch.randn(40, 30, requires_grad=True)
    loss = (activation(x) * 2).sum()
    loss.backward(retain_graph=True)
    first = x.grad.numpy().copy()
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * first)
