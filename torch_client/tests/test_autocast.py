# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.autocast("holdfast") and GradScaler, beside the CPU's."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_lists_are_pytorchs(device, dtype):
    x, y = torch.randn(4, 4, device=device), torch.randn(4, 4, device=device)
    with torch.autocast(device, dtype=dtype):
        assert torch.is_autocast_enabled(device)
        product = x @ y
        assert product.dtype == dtype
        assert torch.nn.functional.linear(x, y).dtype == dtype
        image, kernel = x.view(1, 1, 4, 4), y[:3, :3].reshape(1, 1, 3, 3)
        assert torch.nn.functional.conv2d(image, kernel).dtype == dtype
        assert product.softmax(0).dtype == torch.float32
        assert product.exp().dtype == torch.float32
        assert product.sum(dtype=None).dtype == torch.float32
        assert (product + x).dtype == torch.float32
        assert torch.cat([product, x]).dtype == torch.float32
        assert torch.norm(product).dtype == torch.float32
        with torch.autocast(device, enabled=False):
            assert (x @ y).dtype == torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy"):
            torch.nn.functional.binary_cross_entropy(x.sigmoid(), y.sigmoid())
    assert (x @ y).dtype == torch.float32


def losses(device, dtype, steps=12):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)
    )
    x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    step = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for _ in range(steps):
        step.zero_grad()
        with torch.autocast(device, dtype=dtype):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        step.step()
        found.append(loss.item())
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())
    return found


def test_a_training_in_bfloat16(device):
    ours, theirs = losses(device, torch.bfloat16), losses("cpu", torch.bfloat16)
    assert ours == pytest.approx(theirs, rel=2e-2)
    assert ours[-1] < ours[0]


def test_a_scaler_skips_what_is_infinite_and_grows(device):
    weight = torch.nn.Parameter(torch.ones(3, device=device))
    step = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
    for factor, scale in [(1.0, 8.0), (1.0, 16.0), (float("inf"), 8.0), (1.0, 8.0)]:
        step.zero_grad()
        before = weight.detach().clone()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(step)
        scaler.update()
        assert scaler.get_scale() == scale
        moved = 0.0 if factor == float("inf") else -1.0
        assert torch.equal(weight.detach() - before, torch.full_like(before, moved))


def test_gradients_are_unscaled_before_they_are_clipped(device):
    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0], device=device))
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    step = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((weight * weight).sum() / 2).backward()
    scaler.unscale_(step)
    assert weight.grad.tolist() == [3.0, 4.0]
    assert torch.nn.utils.clip_grad_norm_([weight], 1.0).item() == 5.0
    scaler.step(step)
    assert weight.detach().tolist() == pytest.approx([2.4, 3.2])
