# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""utils.benchmark, cuda.nvtx, hooks on several gradients, norms of gradients,
comparisons of collections."""

import math

import pytest


def test_a_timer_waits_for_the_daemon(torch):
    from holdfast.utils import benchmark

    x = torch.ones(300, 300)
    timer = benchmark.Timer("x @ x", globals={"x": x}, label="product")
    found = timer.timeit(20)
    assert len(found.times) == 1 and found.mean == found.median > 0
    assert "product" in repr(found)
    found = timer.blocked_autorange(min_run_time=0.01)
    assert sum(found.raw_times) >= 0.01 and found.iqr >= 0
    with pytest.raises(ValueError, match="Python statements. Got 'c\\+\\+'"):
        benchmark.Timer("x", language="c++")


def test_ranges_of_a_profile(torch):
    nvtx = torch.cuda.nvtx
    with torch.profiler.profile() as profile:
        assert nvtx.range_push("outer") == 0
        with nvtx.range("inner {}", 1):
            nvtx.mark("here")
        assert nvtx.range_pop() == 0
        assert nvtx.range_pop() == -1
    names = {event.key for event in profile.key_averages()}
    assert {"outer", "inner 1", "here"} <= names


def test_a_hook_on_several_gradients(torch):
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), seen.append)
    (a * 2 + b * 3).sum().backward()
    (a * b).sum().backward()
    assert [[g.tolist() for g in found] for found in seen] == [
        [[2, 2], [3, 3]],
        [[1, 1], [1, 1]],
    ]
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 2


def test_norms_of_gradients(torch):
    a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])
    norm = torch.nn.utils.get_total_norm([a.grad, b.grad])
    assert norm.item() == 5
    assert torch.nn.utils.get_total_norm([a.grad, b.grad], math.inf).item() == 4
    torch.nn.utils.clip_grads_with_norm_([a, b], 1.0, norm)
    assert a.grad[0].item() == pytest.approx(0.6, 1e-5)
    assert torch.nn.utils.clip_grad_norm_((p for p in (a, b)), 0.5).item() == (
        pytest.approx(1, 1e-5)
    )
    assert b.grad[1].item() == pytest.approx(0.4, 1e-5)


def test_collections_are_compared_item_by_item(torch):
    close = torch.testing.assert_close
    close([torch.ones(2), {"a": torch.zeros(1)}], [torch.ones(2), {"a": [0.0]}])
    with pytest.raises(AssertionError, match="length of the sequences"):
        close([torch.ones(2)], [])
    with pytest.raises(AssertionError, match=r"\['b'\] are in one only"):
        close({"a": 1}, {"a": 1, "b": 2})
    with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
        close((torch.ones(2),), (torch.tensor([1.0, 2.0]),))
    torch.testing.assert_allclose(torch.ones(2), [1, 1])
