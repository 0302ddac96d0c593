# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elementwise results lie as PyTorch lays them: dense permuted operands keep their
order, channels_last stays channels_last."""

import op_call
import pytest
import torch

F = torch.nn.functional

UNARY = {
    "add": lambda x: x + 1,
    "clamp": lambda x: x.clamp(0, 1),
    "clone": torch.clone,
    "empty_like": torch.empty_like,
    "exp": torch.exp,
    "gelu": F.gelu,
    "gt": lambda x: x > 0,
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "logical_not": torch.logical_not,
    "masked_fill": lambda x: x.masked_fill(x > 0, 1),
    "neg": torch.neg,
    "pow": lambda x: x**2,
    "rsub": lambda x: 1 - x,
    "softmax": lambda x: x.softmax(1),
    "softplus": F.softplus,
    "to": lambda x: x.to(torch.float64),
    "where": lambda x: torch.where(x > 0, x, -x),
    "zeros_like": torch.zeros_like,
}
LAYOUTS = {
    "channels_last": lambda: torch.randn(2, 3, 4, 5).to(
        memory_format=torch.channels_last
    ),
    "channels_last_3d": lambda: torch.randn(2, 3, 4, 5, 2).to(
        memory_format=torch.channels_last_3d
    ),
    "transposed": lambda: torch.randn(3, 4).t(),
    "permuted": lambda: torch.randn(3, 4, 5).permute(2, 0, 1),
    "sliced": lambda: torch.randn(6, 8)[::2, 1:5],
    "expanded": lambda: torch.randn(3, 1).expand(3, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", UNARY)
def test_one_operand(device, op, layout):
    x = LAYOUTS[layout]()
    there = op_call.to_device(x, device)
    assert there.stride() == x.stride()
    assert UNARY[op](there).stride() == UNARY[op](x).stride()


@pytest.mark.parametrize("other", [(2, 3, 4, 5), (3, 1, 1), (5,), ()])
@pytest.mark.parametrize("swap", [False, True])
def test_two_operands(device, other, swap):
    pair = [LAYOUTS["channels_last"](), torch.randn(other)]
    pair = pair[::-1] if swap else pair
    ours = torch.mul(*(op_call.to_device(x, device) for x in pair))
    assert ours.stride() == torch.mul(*pair).stride()


def test_gradients_of_channels_last(device):
    x = LAYOUTS["channels_last"]().requires_grad_()
    there = op_call.to_device(x, device)
    for leaf in (x, there):
        (leaf * leaf).sum().backward()
    assert there.grad.stride() == x.grad.stride()
