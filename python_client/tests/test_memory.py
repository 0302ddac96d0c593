# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The session's memory counters, and what a training step takes."""


def test_counters_follow_tensors(torch):
    before = torch.memory_allocated()
    x = torch.zeros(1 << 18)  # 1 MiB
    assert torch.memory_allocated() - before == 1 << 20
    torch.reset_peak_memory_stats()
    y = x + 1
    del y
    assert torch.memory_allocated() - before == 1 << 20
    assert torch.max_memory_allocated() - before == 2 << 20
    torch.reset_peak_memory_stats()
    assert torch.max_memory_allocated() - before == 1 << 20
    assert torch.memory_reserved() >= torch.memory_allocated()
    assert torch.cuda.memory_allocated() == torch.memory_allocated()


def test_backward_frees_what_it_has_passed(torch):
    """A chain of n saved tensors never grows beyond them by n gradients."""
    size, n = 1 << 18, 16
    x = torch.ones(size, requires_grad=True)
    torch.synchronize()
    before = torch.memory_allocated()
    torch.reset_peak_memory_stats()
    y = x
    for _ in range(n):
        y = y.sin()
    y.sum().backward()
    del y
    peak = torch.max_memory_allocated() - before
    assert peak <= (n + 3) * size * 4
    assert torch.memory_allocated() - before <= size * 4 + 1024  # x.grad


def test_views_and_broadcasts_are_not_materialised(torch):
    size = 1 << 18
    x = torch.ones(size, requires_grad=True)
    torch.synchronize()
    before = torch.memory_allocated()
    torch.reset_peak_memory_stats()
    y = x.view(512, 512).t().unsqueeze(0).expand(64, 512, 512)
    y.sum().backward()
    assert torch.max_memory_allocated() - before <= 3 * size * 4
