# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""In which order results of elementwise ops lie: as their operands, as PyTorch's."""

import random

import numpy as np
import pytest


def test_a_result_lies_as_its_tensor(torch):
    x = torch.arange(24.0).view(2, 3, 4)
    turned = x.permute(2, 0, 1)
    assert turned.stride() == (1, 12, 4)
    for y in (
        turned + 1,
        1 - turned,
        turned.relu(),
        turned.exp().double(),
        turned > 3,
        turned * turned,
        turned.clone(),
        torch.where(turned > 3, turned, 0.0),
        torch.zeros_like(turned),
        torch.rand_like(turned),
        torch.full_like(turned, 2),
        turned + torch.ones(4, 2, 3),  # the first tells
        turned * torch.ones(3),
        torch.ones(3) * turned,
    ):
        assert y.stride() == (1, 12, 4), y
        assert not y.is_contiguous() and y.permute(1, 2, 0).is_contiguous()
    assert (torch.ones(4, 2, 3) + turned).is_contiguous()
    assert (x[:, ::2] + 1).is_contiguous()
    # Gaps are closed.
    assert (turned[:, :, ::2] + 1).stride() == (1, 8, 4)
    assert (turned + 1).tolist() == (turned.contiguous() + 1).tolist()
    assert np.array_equal(
        (turned - 2).numpy(), np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1) - 2
    )


def test_an_alias_and_a_copy(torch):
    """contiguous() of such a result is a copy: a write to it leaves the other."""
    x = torch.arange(6.0).view(2, 3)
    y = x.t() + 1
    z = y.contiguous()
    z.add_(10)
    assert y.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert y.reshape(-1).tolist() == [1, 4, 2, 5, 3, 6]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        y.view(-1)


def test_channels_last(torch):
    x = torch.rand(2, 3, 4, 5)
    last = x.contiguous(memory_format=torch.channels_last)
    strides = (60, 1, 15, 3)
    assert last.stride() == strides and last.tolist() == x.tolist()
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert not last.is_contiguous() and not x.is_contiguous(
        memory_format=torch.channels_last
    )
    assert last.relu().mul(2).sub(last).stride() == strides
    assert last.contiguous(memory_format=torch.channels_last) is last
    assert torch.empty_like(last).stride() == strides
    assert torch.empty_like(x, memory_format=torch.channels_last).stride() == strides
    assert torch.zeros_like(last, memory_format=torch.contiguous_format).is_contiguous()
    assert last.clone(memory_format=torch.contiguous_format).is_contiguous()
    assert x.clone(memory_format=torch.channels_last).stride() == strides
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        x[0].contiguous(memory_format=torch.channels_last)
    five = torch.rand(1, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d)
    assert (five + 1).is_contiguous(memory_format=torch.channels_last_3d)


def test_gradients_and_writes(torch):
    w = torch.arange(6.0).view(2, 3).requires_grad_()
    y = (w.t() * 2).exp() * 1
    y.mul_(3)
    (y * torch.arange(6.0).view(3, 2)).sum().backward()
    expected = 2 * 3 * np.exp(2 * np.arange(6.0).reshape(2, 3))
    expected = expected * np.arange(6.0).reshape(3, 2).T
    assert np.allclose(w.grad.numpy(), expected, 1e-5)
    assert w.grad.is_contiguous()
    out = torch.empty(3, 2)
    torch.add(w.detach().t(), 1, out=out)
    assert out.is_contiguous() and out[0, 1].item() == 4
    assert y.grad_fn is not None and w.t().clone().grad_fn.name() == "CloneBackward0"


STEPS = [
    lambda x, m: x.permute(3, 1, 0, 2),
    lambda x, m: x.transpose(0, 2),
    lambda x, m: x[:, ::2],
    lambda x, m: x[..., 1:],
    lambda x, m: x[:1],
    lambda x, m: x[:, :1].expand_as(x),
    lambda x, m: x.contiguous(),
    lambda x, m: x.contiguous(memory_format=m.channels_last),
    lambda x, m: x.clone(),
    lambda x, m: x.clone(memory_format=m.contiguous_format),
    lambda x, m: x + 1,
    lambda x, m: 7 - x,
    lambda x, m: x.relu(),
    lambda x, m: x.double(),
    lambda x, m: x + x.contiguous(),
    lambda x, m: x.contiguous() + x,
    lambda x, m: x * x[0] / 50,
    lambda x, m: m.zeros_like(x) + x,
    lambda x, m: m.empty_like(x).copy_(x),
    lambda x, m: m.where(x > 3, x, -x),
    lambda x, m: x.clamp(0, 5),
]


def outcome(module, steps):
    x = module.arange(120, dtype=module.float32).view(2, 3, 4, 5)
    for step in steps:
        x = step(x, module)
    # Strides of one element say nothing.
    strides = [s if n > 1 else 0 for n, s in zip(x.shape, x.stride())]
    return tuple(x.shape), strides, np.array(x.double().numpy())


def test_programs_lie_as_pytorchs(torch):
    peer = pytest.importorskip("torch")
    draw = random.Random(5)
    for _ in range(200):
        steps = draw.choices(STEPS, k=draw.randint(1, 7))
        try:
            theirs = outcome(peer, steps)
        except IndexError:  # nothing is left to take
            continue
        ours = outcome(torch, steps)
        names = [STEPS.index(step) for step in steps]
        assert ours[:2] == theirs[:2], names
        assert np.allclose(ours[2], theirs[2], 1e-5), names
