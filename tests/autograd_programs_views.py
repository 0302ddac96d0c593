# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: views of tensors in the graph, and writes through them."""

from autograd_program import leaf, program, raised, ramp


@program
def rows_filled_one_by_one(torch):
    x = leaf(torch, 4, 3)
    out = torch.zeros(4, 3, dtype=torch.float64)
    for i in range(4):
        out[i] = x[i] * (i + 1) + (out[i - 1] if i else 0)
    (out * out).sum().backward()
    return out, x.grad


@program
def masked_assignment(torch):
    x = leaf(torch, 3, 4)
    y = x * 2
    y[y > 0.5] = y[y > 0.5] ** 2
    y[y < -0.5] = 0.25
    y.sum().backward()
    return y, x.grad


@program
def slices_with_steps(torch):
    x = leaf(torch, 6, 8)
    y = x.clone()
    y[::2, 1::3] *= 3
    y[1::2, ::4] = y[::2, ::4].clone().sin()
    y[..., -1].add_(y[..., 0])
    (y * ramp(torch, 6, 8)).sum().backward()
    return y, x.grad


@program
def transposed_view_is_written(torch):
    x = leaf(torch, 3, 5)
    y = x * 1
    t = y.t()
    t[2].mul_(y[:, 1].clone())
    t.add_(ramp(torch, 5, 1))
    (y**2).sum().backward()
    return y, t, x.grad


@program
def chained_views(torch):
    x = leaf(torch, 2, 3, 4)
    y = x.sinh()
    v = y.transpose(0, 2)[1:3].permute(1, 0, 2)[:, 0]
    v.mul_(10)
    w = y.view(6, 4)[2:4, ::2].unsqueeze(0).squeeze(0)
    w.sub_(v[0, 0])
    y.cumsum(2).sum().backward()
    return y, v, w, x.grad


@program
def base_then_view_then_base(torch):
    x = leaf(torch, 4)
    base = x * 2
    view = base[1:3]
    base.mul_(base.detach() + 1)
    first = view.clone()
    view.add_(x[:2])
    second = base.clone()
    base.sin_()
    (first.sum() + 2 * second.sum() + 3 * view.sum()).backward()
    return base, view, first, second, x.grad


@program
def a_view_outlives_its_base(torch):
    x = leaf(torch, 5)
    base = x * 3
    view = base[1:4]
    base.mul_(2)
    del base
    view.mul_(view.detach().clone())
    view.sum().backward()
    return view, x.grad


@program
def sibling_views_overlap(torch):
    x = leaf(torch, 6)
    base = x + 1
    left, right = base[:4], base[2:]
    left.mul_(2)
    right.mul_(3)
    left.add_(right.sum())
    (left.prod() + right.sum()).backward()
    return base, left, right, x.grad


@program
def expand_is_read_and_not_written(torch):
    x = leaf(torch, 3, 1)
    wide = x.expand(3, 4)
    row = (wide * ramp(torch, 3, 4)).sum(0)
    row.sum().backward()
    return x.grad, wide.requires_grad, list(wide.stride())


@program
def as_strided_windows(torch):
    x = leaf(torch, 8)
    y = x * 1
    windows = y.as_strided((6, 3), (1, 1))
    total = (windows * ramp(torch, 6, 3)).sum()
    part = y.as_strided((2, 2), (4, 2), 1)
    part.mul_(5)
    (total + y.sum()).backward()
    return windows, y, x.grad


@program
def split_parts_are_read(torch):
    x = leaf(torch, 7, 2)
    parts = x.split([2, 4, 1])
    chunks = x.chunk(3, 0)
    singles = x.unbind(1)
    total = sum((i + 1) * p.sum() for i, p in enumerate(parts))
    total = total + sum(c.prod() for c in chunks) + (singles[0] * singles[1]).sum()
    total.backward()
    return [list(c.shape) for c in chunks], x.grad


@program
def diagonal_is_written(torch):
    x = leaf(torch, 4, 4)
    y = x * 2
    y.diagonal().add_(1)
    y.diagonal(1).copy_(x[0, :3])
    y.diagonal(-2).zero_()
    (y @ y).trace().backward()
    return y, x.grad


@program
def narrow_and_select(torch):
    x = leaf(torch, 3, 6)
    y = x.sin()
    y.narrow(1, 2, 3).mul_(y.select(0, 1)[2:5].clone())
    y.select(1, 0).fill_(0.5)
    y.index_fill_(1, torch.tensor([5]), 2.0)
    y.pow(2).sum().backward()
    return y, x.grad


@program
def views_of_a_reshaped_copy(torch):
    x = leaf(torch, 2, 6)
    t = (x * 1).t()
    copy = t.reshape(12)  # not contiguous: a copy
    copy.mul_(0)
    view = (x * 1).reshape(12)
    view[3:5] = 7
    (t.sum() + copy.sum() + view.sum()).backward()
    return t, copy, view, x.grad


@program
def writes_into_a_constant_buffer(torch):
    x = leaf(torch, 3)
    buffer = torch.zeros(3, 3, dtype=torch.float64)
    column = buffer[:, 1]
    flags = [buffer.requires_grad, column.requires_grad]
    buffer[0].copy_(x)
    flags += [buffer.requires_grad, column.requires_grad, column.is_leaf]
    (column * 5).sum().backward()
    return flags, buffer, x.grad


@program
def requires_grad_through_aliases(torch):
    x = leaf(torch, 2)
    base = torch.ones(4, dtype=torch.float64)
    left, right = base[:2], base[2:]
    left.mul_(x)
    facts = {
        "left": [left.requires_grad, left.is_leaf, left.grad_fn is not None],
        "base": [base.requires_grad, base.is_leaf, base.grad_fn is not None],
        "right": [right.requires_grad, right.is_leaf, right.grad_fn is not None],
    }
    right.sum().backward()
    return facts, x.grad, base


@program
def real_parts_of_a_swap(torch):
    x = leaf(torch, 2, 3)
    y = x * 1
    y[0], y[1] = y[1].clone(), y[0].clone()
    y[[0, 1], [2, 0]] = y[[1, 0], [0, 2]]
    (y * ramp(torch, 2, 3)).sum().backward()
    return y, x.grad


@program
def leaf_views_may_not_be_written(torch):
    x = leaf(torch, 4)
    constant = ramp(torch, 4)
    return [
        raised("a leaf variable that requires grad", lambda: x.add_(1)),
        raised("a view of a leaf variable that requires grad", lambda: x[:2].mul_(2)),
        raised("a view of a leaf variable", lambda: x.view(2, 2).t()[0].zero_()),
        raised("a leaf variable", lambda: x.__setitem__(0, 1.0)),
        constant.add_(1),
        x,
    ]


@program
def expanded_memory_may_not_be_written(torch):
    x = leaf(torch, 3, 1)
    wide = (x * 1).expand(3, 4)
    return raised("", lambda: wide.add_(1))


@program
def a_matrix_is_built_from_blocks(torch):
    a, b = leaf(torch, 2, 2), leaf(torch, 2, 3, start=0.5)
    m = torch.eye(5, dtype=torch.float64)
    m[:2, :2] += a
    m[:2, 2:] = b
    m[2:, :2] = b.t()
    m.det().backward()
    return m, a.grad, b.grad


@program
def gradient_of_a_view_is_asked_for(torch):
    x = leaf(torch, 3, 3)
    y = x * 2
    view = y[1]
    loss = (view**2).sum() + y.sum()
    g_view, g_y = torch.autograd.grad(loss, [view, y])
    return g_view, g_y


@program
def a_column_is_updated_in_a_loop(torch):
    x = leaf(torch, 4)
    state = torch.zeros(4, 5, dtype=torch.float64)
    state[:, 0] = x
    for t in range(1, 5):
        state[:, t] = state[:, t - 1] * 0.5 + state[:, t - 1].roll(1, 0) ** 2
    state[:, -1].sum().backward()
    return state, x.grad


@program
def movedim_unfold_and_flatten(torch):
    x = leaf(torch, 2, 3, 4)
    y = x * 1
    y.movedim(0, -1)[1].mul_(2)
    y.flatten(1)[:, 5:7].neg_()
    windows = y.unfold(2, 2, 2)
    (windows.prod(-1).sum() + y.swapaxes(0, 1)[2].sum()).backward()
    return y, x.grad
