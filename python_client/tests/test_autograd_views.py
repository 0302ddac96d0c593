# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gradients through in-place ops on tensors that share memory."""

import gc

import pytest


def test_writing_an_element(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[0] = x[1] * x[2]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 52.0, 48.0]


def test_writes_through_views_meet_in_the_base(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    h = x * 1
    v = h.view(2, 2)
    v.mul_(2)
    v[1].add_(v[0])
    h[2].mul_(3)
    assert h.tolist() == [2.0, 4.0, 24.0, 12.0]
    (v * h.view(2, 2)).sum().backward()
    assert x.grad.tolist() == [296.0, 64.0, 288.0, 48.0]


def test_filling_a_buffer_step_by_step(torch):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    buffer = torch.zeros(4)
    for t in range(4):
        buffer[t] = w.sum() * (t + 1)
    assert buffer.requires_grad and not buffer.is_leaf
    assert buffer.grad_fn is not None
    (buffer**2).sum().backward()
    assert w.grad.tolist() == [300.0, 300.0]


def test_a_view_made_before_the_write_follows_it(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    h = x * x
    v = h[1:3]
    h.mul_(x)
    (gradient,) = torch.autograd.grad(v.sum(), x)
    assert gradient.tolist() == [0.0, 12.0, 27.0, 0.0]


def test_a_constant_view_of_a_constant_becomes_part_of_the_graph(torch):
    w = torch.tensor([3.0], requires_grad=True)
    base = torch.ones(2, 2)
    row, column = base[0], base[:, 1]
    assert not row.requires_grad
    column.mul_(w)
    assert row.requires_grad and base.requires_grad
    row.sum().backward()
    assert w.grad.tolist() == [1.0]


def test_a_base_in_another_order(torch):
    m = torch.arange(6.0).view(2, 3).t().detach()
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    m[1] = w * w
    (m * m).sum().backward()
    assert w.grad.tolist() == [4.0, 32.0]


def test_second_derivatives_through_a_written_view(torch):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = x**3
    y[:2].mul_(x[1:])
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert first.tolist() == [6.0, 37.0, 35.0]
    (second,) = torch.autograd.grad((first**2).sum(), x)
    assert second.tolist() == pytest.approx([366.0, 3540.0, 2148.0])


def test_leaves_are_protected(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x[0] = 1
    view = torch.zeros(2)
    part = view[0]
    view.requires_grad_()
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        part.mul_(x[0])
        part.item()
    with torch.no_grad():
        x[0] = 5
    assert x.tolist() == [5.0, 2.0]


def test_a_view_made_without_grad_is_not_written_with_it(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    with torch.no_grad():
        v = h[0]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        v.mul_(x[0])


def test_overlapping_views_are_refused(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    windows = (x * 1).as_strided((2, 2), (1, 1))
    with pytest.raises(NotImplementedError, match="may share memory"):
        windows.mul_(x[0])
        windows.sum().item()


# ---- versions


def test_version_counts_writes_through_every_alias(torch):
    x = torch.zeros(3)
    assert x._version == 0
    x.add_(1)
    x[0] = 5
    x.detach().mul_(2)
    assert x._version == 3 and x[1:]._version == 3
    x.data.add_(1)
    assert x._version == 3


def test_a_saved_tensor_that_changed_is_an_error_with_its_ops(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y[0] = 0
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
        x.grad.tolist()
    text = str(caught.value)
    assert "[exp]" in text and "[copy_]" in text or "[fill_]" in text
    assert "is at version 1" in text and "expected version 0" in text
    assert "modified by an inplace operation" in text
    line = test_a_saved_tensor_that_changed_is_an_error_with_its_ops.__code__
    assert f"test_autograd_views.py:{line.co_firstlineno + 2})" in text


def test_writes_to_data_stay_unseen(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.data[0] = 0
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0, 7.389056])


def test_graphs_through_written_saved_tensors_are_freed(torch):
    session = torch.zeros(1)._session
    stats = __import__("holdfast._stats", fromlist=["parse"])

    def bytes_in_use():
        gc.collect()
        torch.synchronize()
        mine = stats.parse(session._stats())["sessions"]
        return max(s["bytes_in_use"] for s in mine)

    def leaky():
        x = torch.ones(1000, requires_grad=True)
        a = x * 1
        y = a.sin()  # keeps a
        a[0] = y[1]  # a depends on what keeps it
        a.add_(y)

    leaky()
    before = bytes_in_use()
    for _ in range(20):
        leaky()
    assert bytes_in_use() <= before


def test_nodes_that_only_grad_fn_shows_are_equal(torch):
    base = torch.ones(3, requires_grad=True) * 2
    view = base.view(3)
    view[0] = 5
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    for tensor in (base, view):
        assert tensor.grad_fn == tensor.grad_fn
        assert len({tensor.grad_fn, tensor.grad_fn}) == 1
    assert base.grad_fn != (base * 1).grad_fn
    w = torch.ones(2, 2, requires_grad=True)
    product = torch.nn.functional.linear(torch.ones(1, 2), w)
    turned = [product.grad_fn.next_functions[1][0] for _ in range(2)]
    assert turned[0].name() == "TBackward0" and turned[0] == turned[1]
