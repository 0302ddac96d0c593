# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: backward() and grad(), where gradients go, what is refused."""

from autograd_program import leaf, program, raised, ramp


@program
def gradients_add_up(torch):
    x = leaf(torch, 3)
    history = []
    for i in range(3):
        (x * (i + 1)).sum().backward()
        history.append(x.grad.tolist())
    same = x.grad
    x.grad.zero_()
    (x**2).sum().backward()
    return history, x.grad, same is x.grad


@program
def grad_of_a_leaf_used_many_times(torch):
    x = leaf(torch, 2)
    y = x
    for _ in range(5):
        y = y * x + y.sum()
    y.sum().backward()
    return y, x.grad


@program
def the_second_backward_is_refused(torch):
    x = leaf(torch, 3)
    loss = (x**2).sum()
    loss.backward()

    def again():
        loss.backward()
        return x.grad

    first = x.grad.clone()
    return first, raised("a second time", again)


@program
def a_graph_that_saves_nothing_may_run_twice(torch):
    x = leaf(torch, 3)
    loss = (x + 1).sum()
    loss.backward()
    loss.backward()
    return x.grad


@program
def part_of_a_graph_is_gone(torch):
    x = leaf(torch, 3)
    shared = x.exp()
    (shared * 2).sum().backward()

    def other():
        (shared * 3).sum().backward()
        return x.grad

    return raised("a second time", other)


@program
def retain_graph_keeps_it(torch):
    x = leaf(torch, 3)
    loss = (x**3).sum()
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    loss.backward()
    first = x.grad.clone()
    return first, raised("a second time", lambda: (loss.backward(), x.grad))


@program
def unused_inputs(torch):
    x, z = leaf(torch, 3), leaf(torch, 2)
    loss = (x * 2).sum()
    first = raised(
        "not have been used in the graph",
        lambda: torch.autograd.grad(loss, [x, z], retain_graph=True),
    )
    g = torch.autograd.grad(loss, [x, z], allow_unused=True)
    return first, g[0], g[1] is None, x.grad is None, z.grad is None


@program
def grad_outputs_weigh(torch):
    x = leaf(torch, 2, 3)
    y, z = x**2, x.sum(1)
    g = torch.autograd.grad([y, z], x, [ramp(torch, 2, 3), ramp(torch, 2)])
    wrong = raised(
        "mismatch in shape",
        lambda: torch.autograd.grad(x * 2, x, torch.ones(3, 2, dtype=torch.float64)),
    )
    return g, wrong


@program
def non_scalar_backward(torch):
    x = leaf(torch, 3)
    y = x * x
    refused = raised("can be implicitly created only for scalar", y.backward)
    y.backward(ramp(torch, 3, start=1, end=2))
    one = leaf(torch, 1, 1)
    (one * 4).backward()  # one element is enough
    return refused, x.grad, one.grad


@program
def backward_for_some_inputs(torch):
    a, b = leaf(torch, 3), leaf(torch, 3)
    mid = a * 2
    ((mid * b) ** 2).sum().backward(inputs=[b])
    state = [a.grad is None, b.grad]
    loss = (a * b).sum()
    empty = raised("cannot be empty", lambda: loss.backward(inputs=[]))
    loss.backward(inputs=(a, b))
    return state, empty, a.grad, b.grad


@program
def backward_needs_something_to_do(torch):
    constant = ramp(torch, 3)
    x = leaf(torch, 3)
    phrase = "does not require grad and does not have a grad_fn"
    return [
        raised(phrase, lambda: constant.sum().backward()),
        raised(phrase, lambda: x.detach().sum().backward()),
        raised(phrase, lambda: torch.autograd.grad(constant.sum(), x)),
        raised(
            "does not require grad",
            lambda: torch.autograd.grad(x.sum(), constant),
        ),
    ]


@program
def retained_gradients(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.retain_grad()
    z = y**2
    z.retain_grad()
    z.retain_grad()
    z.sum().backward()
    flags = [x.retains_grad, y.retains_grad, z.retains_grad]
    refused = raised("requires_grad=False", ramp(torch, 2).retain_grad)
    return x.grad, y.grad, z.grad, flags, refused


@program
def retained_gradient_of_a_view(torch):
    x = leaf(torch, 4)
    y = x * 2
    view = y[1:3]
    view.retain_grad()
    y.retain_grad()
    (view**2).sum().backward()
    return view.grad, y.grad, x.grad


@program
def retained_gradient_then_written(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y**2).sum().backward()
    return y, y.grad, x.grad, y.retains_grad


@program
def retained_gradient_of_a_base_written_through_a_view(torch):
    x = leaf(torch, 4)
    y = x * 2
    y.retain_grad()
    y[:2].mul_(5)
    (y**2).sum().backward()
    return y, y.grad, x.grad


@program
def grad_of_an_intermediate_is_none(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.sum().backward()
    return y.grad is None, y.is_leaf, x.is_leaf, x.grad


@program
def integers_have_no_gradient(torch):
    x = leaf(torch, 4)
    top = x.argmax()
    order = x.argsort()
    mask = x > 0
    values = x[order][top] + (x * mask).sum()
    values.backward()
    return top, order, mask, x.grad


@program
def assigned_gradients(torch):
    x = leaf(torch, 3)
    x.grad = ramp(torch, 3)
    (x * 2).sum().backward()
    added = x.grad.clone()
    x.grad = None

    def shape():
        x.grad = ramp(torch, 4)

    def kind():
        x.grad = torch.zeros(3, dtype=torch.float32)

    return added, x.grad, raised("", shape), raised("", kind)


@program
def gradient_of_a_gradient(torch):
    x = leaf(torch, 3)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g**2).sum(), x, create_graph=True)
    h.sum().backward()
    return g, h, x.grad


@program
def a_linear_gradient_with_create_graph(torch):
    x = leaf(torch, 3)
    (g,) = torch.autograd.grad((x * 2).sum(), x, create_graph=True)
    again = raised("does not require grad", lambda: torch.autograd.grad(g.sum(), x))
    return g, again


@program
def backward_with_create_graph(torch):
    x = leaf(torch, 3)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    loss = (g**2).sum()
    x.grad = None
    loss.backward()
    return g, x.grad


@program
def jacobian_row_by_row(torch):
    x = leaf(torch, 3)
    y = torch.stack([x[0] * x[1], x[1] ** 2 + x[2], x.prod()])
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(3)]
    return torch.stack(rows)


@program
def several_roots_share_a_graph(torch):
    x = leaf(torch, 3)
    y = x.sin()
    torch.autograd.backward([y.sum(), (y * 2).sum(), x[0]])
    return x.grad


@program
def the_same_input_twice(torch):
    x = leaf(torch, 3)
    y = (x**2).sum()
    a, b = torch.autograd.grad(y, [x, x])
    return a, b


@program
def gradient_with_respect_to_the_root(torch):
    x = leaf(torch, 3)
    y = (x * 2).sum()
    (g,) = torch.autograd.grad(y, y, retain_graph=True)
    (own,) = torch.autograd.grad(x, x, ramp(torch, 3))
    return g, own


@program
def the_graph_can_be_walked(torch):
    x, w = leaf(torch, 3), leaf(torch, 3)
    loss = (x * w + 1).sum()
    node, depth, leaves = loss.grad_fn, 0, 0
    stack = [(node, 0)]
    while stack:
        node, level = stack.pop()
        depth = max(depth, level)
        leaves += node.name().endswith("AccumulateGrad")
        stack += [(n, level + 1) for n, _ in node.next_functions if n is not None]
    return depth, leaves, x.grad_fn is None, type(loss.grad_fn).__name__ != ""


@program
def a_constant_has_no_node(torch):
    x, c = leaf(torch, 3), ramp(torch, 3)
    product = x * c
    facts = [n is None for n, _ in product.grad_fn.next_functions]
    return facts, product.grad_fn.name(), (x + 1).exp().grad_fn.name()


@program
def nodes_are_recognised(torch):
    x = leaf(torch, 3)
    y = x * x
    z = y + y.exp()
    (a, _), (b, _) = z.grad_fn.next_functions
    (c, _) = b.next_functions[0]
    seen = {z.grad_fn, a, b, c}
    return z.grad_fn == z.grad_fn, a == y.grad_fn, a == c, a != b, len(seen)


@program
def shared_views_outside_the_loop(torch):
    w = leaf(torch, 2, 3)
    flat, wide = w.t().reshape(3, 2) + 0, w.view(6)  # made once
    for step in range(3):
        (flat * ramp(torch, 3, 2)).sum().backward()
        (wide * (step + 1)).sum().backward()
    return w.grad


@program
def special_points(torch):
    x = torch.tensor([0.0, 1.0, -1.0, 4.0], dtype=torch.float64, requires_grad=True)
    out = x.abs() + x.clamp(0, 1) + x.relu() + torch.where(x > 0, x.sqrt(), x)
    out = out + torch.maximum(x, x * 1) + x.norm()
    out.sum().backward()
    return out, x.grad
