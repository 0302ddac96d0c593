# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: in-place ops, versions of saved tensors, detach(), .data."""

from autograd_program import leaf, program, raised, ramp


@program
def a_saved_tensor_was_written(torch):
    x = leaf(torch, 3)
    y = x.exp()  # saves its output
    loss = y.sum()
    y.mul_(2)

    def run():
        loss.backward()
        return x.grad

    return raised("modified by an inplace operation", run)


@program
def a_saved_tensor_was_written_through_a_view(torch):
    x = leaf(torch, 3)
    y = x * 2
    loss = (y**2).sum()
    y[0] = 5.0

    def run():
        loss.backward()
        return x.grad

    return raised("modified by an inplace operation", run)


@program
def a_saved_tensor_was_written_under_no_grad(torch):
    x = leaf(torch, 3)
    w = ramp(torch, 3).clone()
    loss = (x * w).sum()
    with torch.no_grad():
        w.zero_()

    def run():
        loss.backward()
        return x.grad

    return raised("modified by an inplace operation", run)


@program
def a_saved_tensor_was_written_through_detach(torch):
    x = leaf(torch, 3)
    y = x * 2
    loss = (y**2).sum()
    y.detach().add_(1)

    def run():
        loss.backward()
        return x.grad

    return raised("modified by an inplace operation", run), y


@program
def writes_through_data_stay_unseen(torch):
    x = leaf(torch, 3)
    y = x * 2
    loss = (y**2).sum()
    before = y._version
    y.data.zero_()
    loss.backward()
    return y._version - before, y, x.grad


@program
def a_write_that_backward_does_not_need(torch):
    x = leaf(torch, 3)
    y = x * 2
    z = y + 1  # saves nothing
    y.zero_()
    (z.sum() + y.sum()).backward()
    return y, z, x.grad


@program
def every_in_place_arithmetic(torch):
    x = leaf(torch, 5, start=0.5, end=1.5)
    y = x * 1
    y += x
    y -= 0.25
    y *= x + 2
    y /= 3
    y **= 2
    y.clamp_(0.05, 3).neg_().abs_().log_().add_(x, alpha=0.5)
    y.addcmul_(x, x, value=2).addcdiv_(x, x + 1).exp_()
    y.sum().backward()
    return y, x.grad


@program
def in_place_with_itself(torch):
    x = leaf(torch, 4)
    y = x * 1
    y.mul_(y)
    y.add_(y)
    y[1:].add_(y[:-1].clone())
    y.sum().backward()
    return y, x.grad


@program
def copy_between_graphs(torch):
    a, b = leaf(torch, 3), leaf(torch, 3, start=2, end=3)
    y = a * 2
    y.copy_(b)  # the old history is gone
    y[0].copy_(a[2])
    (y**2).sum().backward()
    return y, a.grad, b.grad


@program
def zero_and_fill_cut_the_history(torch):
    x = leaf(torch, 4)
    y = x * 2
    y.zero_()
    flags = [y.requires_grad, y.is_leaf]
    y[1:3].fill_(3)
    y[3] = x[0]
    y.sum().backward()
    return flags, y, x.grad


@program
def index_ops_in_place(torch):
    x = leaf(torch, 4, 3)
    y = x * 1
    i = torch.tensor([0, 2])
    y.index_add_(0, i, x[1:3])
    y.index_copy_(0, torch.tensor([3]), x[:1] * 5)
    y.scatter_(1, torch.tensor([[1], [0], [2], [1]]), -1.0)
    y.scatter_add_(0, torch.tensor([[0, 1, 2]]), x[:1])
    y.masked_fill_(y > 3, 0.5)
    y.index_put_((i, i), x[0, :2], accumulate=True)
    (y**2).sum().backward()
    return y, x.grad


@program
def detach_shares_memory(torch):
    x = leaf(torch, 3)
    y = x * 2
    d = y.detach()
    d[0] = 9
    facts = [d.requires_grad, d.is_leaf, y.requires_grad, y.is_leaf]
    y.sum().backward()
    return facts, y, d, x.grad


@program
def detach_in_place(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.detach_()
    facts = [y.requires_grad, y.is_leaf, y.grad_fn is None]
    y.requires_grad_()
    (x * y).sum().backward()
    return facts, x.grad, y.grad


@program
def requires_grad_is_toggled(torch):
    x = ramp(torch, 3).clone()
    one = (x * 2).requires_grad
    x.requires_grad_()
    y = (x * 2).sum()
    x.requires_grad_(False)
    after = (x * 2).requires_grad
    x.requires_grad = True
    z = (x * 3).sum()
    (y + z).backward()
    return one, after, x.grad


@program
def only_leaves_may_be_toggled(torch):
    x = leaf(torch, 3)
    y = x * 2
    integers = torch.tensor([1, 2])

    def freeze():
        y.requires_grad = False

    return [
        raised("only change requires_grad flags of leaf variables", freeze),
        raised("of leaf variables", lambda: y.requires_grad_(False)),
        y.requires_grad_(True),
        raised("floating point", lambda: integers.requires_grad_()),
        raised(
            "floating point",
            lambda: torch.tensor([True, False], requires_grad=True),
        ),
    ]


@program
def versions_are_counted(torch):
    x = torch.zeros(4)
    view, apart = x[1:], x.detach()
    data = x.data
    counts = [x._version]
    x.add_(1)
    counts.append(view._version)
    view.mul_(2)
    counts.append(x._version)
    apart.mul_(2)
    counts += [x._version, apart._version]
    data.zero_()
    counts += [x._version, data._version]
    x[0] = 1
    counts.append(x._version)
    return counts


@program
def weights_are_written_under_no_grad(torch):
    w = leaf(torch, 3)
    for _ in range(3):
        loss = (w**2).sum()
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w[0].clamp_(min=-0.5)
    return w, w.is_leaf, w.grad


@program
def clones_are_apart(torch):
    x = leaf(torch, 3)
    y = x.clone()
    y.mul_(2)
    z = y.clone().detach()
    z += 1
    (y * z).sum().backward()
    return x, y, z, x.grad


@program
def a_failed_backward_leaves_grad_usable(torch):
    x, w = leaf(torch, 3), leaf(torch, 3)
    y = x.exp()
    loss = (y * w).sum()
    y.zero_()

    def run():
        loss.backward()
        return x.grad, w.grad

    first = raised("modified by an inplace operation", run)
    x.grad = w.grad = None
    (x * w).sum().backward()
    return first, x.grad, w.grad


@program
def a_failed_backward_leaves_no_gradient(torch):
    x, w = leaf(torch, 3), leaf(torch, 3)
    y = x.exp()
    loss = (y * w).sum()
    y.zero_()

    def run():
        loss.backward()
        return (x.grad * 2).sum()

    first = raised("modified by an inplace operation", run)
    none = [x.grad is None, w.grad is None]
    (x * w).sum().backward()
    return first, none, x.grad, w.grad


@program
def a_failed_backward_keeps_what_was_there(torch):
    x = leaf(torch, 3)
    (x * 3).sum().backward()
    y = x.exp()
    loss = y.sum()
    y.zero_()

    def run():
        loss.backward()
        return x.grad

    first = raised("modified by an inplace operation", run)
    return first, x.grad


@program
def relu_and_dropout_in_place(torch):
    functional = torch.nn.functional
    x = leaf(torch, 6)
    y = functional.relu(x * 2, inplace=True)
    y = functional.leaky_relu(y - 0.5, 0.1, inplace=True)
    y = functional.dropout(y, 0.5, training=False, inplace=True)
    y = functional.hardtanh(y * 1, -1, 1, inplace=True)
    y.sum().backward()
    return y, x.grad


@program
def the_dtype_of_a_target_counts(torch):
    x = leaf(torch, 3)
    low = torch.zeros(3, dtype=torch.float32)
    low[:2] = x[:2]
    low.add_(x)
    low.sum().backward()
    whole = torch.zeros(2, dtype=torch.int64)
    return low, x.grad, raised("cast", lambda: whole.add_(x[:2]))
