# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.signal.windows against SciPy's."""

import numpy as np
import pytest
import scipy.signal.windows

SAME_IN_SCIPY = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 2.5},
    "gaussian": {"std": 1.5},
    "general_cosine": {"a": [0.4, 0.5, 0.1]},
    "general_hamming": {"alpha": 0.7},
    "hamming": {},
    "hann": {},
    "kaiser": {"beta": 8.0},
    "nuttall": {},
}


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", SAME_IN_SCIPY)
def test_agrees_with_scipy(torch, name, sym):
    arguments = SAME_IN_SCIPY[name]
    for size in (0, 1, 2, 7, 10):
        ours = getattr(torch.signal.windows, name)(
            size, sym=sym, dtype=torch.float64, **arguments
        )
        theirs = getattr(scipy.signal.windows, name)(size, sym=sym, **arguments)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6, atol=1e-12)


def test_options(torch):
    window = torch.signal.windows.hann(4, requires_grad=True)
    assert window.dtype is torch.float32 and window.requires_grad
    with pytest.raises(ValueError, match="non-negative window length, got M=-1"):
        torch.signal.windows.hann(-1)
    with pytest.raises(ValueError, match="dtypes, got"):
        torch.signal.windows.hann(4, dtype=torch.int64)
    with pytest.raises(ValueError, match="Tau must be positive, got: 0"):
        torch.signal.windows.exponential(4, tau=0)


def test_masked_reductions(torch):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    mask = torch.tensor([[True, False, True], [False, False, False]])
    assert torch.masked.sum(x, 1, mask=mask).tolist() == [2.0, 0.0]
    assert torch.masked.amax(x, 1, mask=mask).tolist() == [2.0, -float("inf")]
    assert torch.masked.mean(x, 1, mask=mask)[0].item() == 1.0
    torch.masked.prod(x, mask=mask[:1]).backward()
    assert x.grad.tolist() == [[30.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_results_that_do_not_change_are_in_the_graph(torch):
    x = torch.tensor([7.0, -7.0, float("nan")], requires_grad=True)
    for y in (
        torch.div(x, 2, rounding_mode="floor"),
        torch.div(x, 2, rounding_mode="trunc"),
        torch.angle(x),
    ):
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.tolist() == [0.0, 0.0, 0.0]


def test_a_bound_of_one_element_has_its_gradient(torch):
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = torch.tensor(2.0, requires_grad=True)
    for bounded in (torch.clamp_max(x, y), x.clip(max=y), x.clamp(-1.0, y)):
        grads = torch.autograd.grad(bounded.sum(), (x, y))
        assert [g.tolist() for g in grads] == [[1.0, 0.0], 1.0]


def test_resize_as_is_a_function_too(torch):
    assert torch.resize_as_(torch.ones(4), torch.ones(2, 2)).shape == (2, 2)
