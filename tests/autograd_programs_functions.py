# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: autograd.Function with a gradient of the user's."""

from autograd_program import leaf, program, raised, ramp


def cube(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    return Cube


@program
def a_function_twice_differentiated(torch):
    x = leaf(torch, 3)
    y = cube(torch).apply(x)
    name = type(y.grad_fn).__name__
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    h.sum().backward()
    return name, y, g, h, x.grad


@program
def a_function_of_an_output(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0] * g

    x = leaf(torch, 3)
    (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    g.sum().backward()
    return g, x.grad


@program
def a_function_marks_dirty(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(torch, 3)
    y = x * 1
    z = Double.apply(y)
    facts = [z is y, y._version, y.is_leaf]
    (y**2).sum().backward()
    own = leaf(torch, 2)
    refused = raised("leaf variable", lambda: Double.apply(own))
    return facts, y, x.grad, refused


@program
def a_function_writes_a_view(torch):
    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(torch, 4)
    y = x * 1
    Triple.apply(y[1:3])
    (y**2).sum().backward()
    return y, x.grad


@program
def outputs_that_take_no_gradient(torch):
    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort(descending=True)
            rank = order.double()
            ctx.mark_non_differentiable(order, rank)
            ctx.save_for_backward(order)
            return values, order, rank

        @staticmethod
        def backward(ctx, g, g_order, g_rank):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(g).scatter_(0, order, g)

    x = leaf(torch, 4)
    values, order, rank = Sorted.apply(x)
    facts = [values.requires_grad, order.requires_grad, rank.requires_grad]
    (values * ramp(torch, 4)).sum().backward()
    return facts, values, order, x.grad


@program
def gradients_are_materialized_or_not(torch):
    seen = []

    def pair(materialize):
        class Pair(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                seen.append([None if g is None else g.tolist() for g in (a, b)])
                return sum(g for g in (a, b) if g is not None)

        return Pair

    x = leaf(torch, 2)
    for materialize in (True, False):
        pair(materialize).apply(x)[1].sum().backward()
    return seen, x.grad


@program
def some_arguments_take_none(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, label, w):
            ctx.factor = factor
            ctx.needs = ctx.needs_input_grad
            return x * factor + w

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None, None, None

    x, w = leaf(torch, 3), leaf(torch, 3)
    y = Scale.apply(x, 2.5, "label", w)
    needs = list(y.grad_fn.needs)
    y.sum().backward()
    return needs, y, x.grad, w.grad


@program
def the_context_after_backward(torch):
    x = leaf(torch, 3)
    y = cube(torch).apply(x)
    y.grad_fn.note = "mine"
    y.sum().backward()
    return y.grad_fn.note


@program
def once_is_enough(torch):
    from_function = torch.autograd.function

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @from_function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(torch, 3)
    (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    weight = leaf(torch, 3)
    y = Square.apply(x)
    (h,) = torch.autograd.grad(y, x, weight, create_graph=True)
    again = raised("", lambda: torch.autograd.grad(h.sum(), x))
    return g, h.requires_grad, h.detach(), again


@program
def functions_inside_functions(torch):
    inner = cube(torch)

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return inner.apply(x) + 1

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                y = inner.apply(x)
            return torch.autograd.grad(y, x, g)[0]

    x = leaf(torch, 3)
    Outer.apply(x * 2).sum().backward()
    return x.grad


@program
def functions_that_answer_wrongly(torch):
    def returning(value):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, g):
                return value(g)

        return Wrong

    def run(value):
        x = leaf(torch, 3)
        returning(value).apply(x, x * 2).sum().backward()
        return x.grad

    return [
        raised("number of gradients", lambda: run(lambda g: g)),
        raised("number of gradients", lambda: run(lambda g: (g, g, g))),
        raised("invalid gradient at index 1", lambda: run(lambda g: (g, g[:2]))),
        raised("expected", lambda: run(lambda g: (g, "text"))),
        run(lambda g: (g, None)),
        run(lambda g: (None, g)),
        run(lambda g: (g, g, None)),
    ]


@program
def functions_that_raise(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("in backward")

    class Forgotten(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    x = leaf(torch, 3)
    return [
        raised("in backward", lambda: (Bad.apply(x).sum().backward(), x.grad)),
        raised("", lambda: (Forgotten.apply(x).sum().backward(), x.grad)),
        x.grad,
    ]


@program
def a_saved_input_was_written(torch):
    x = leaf(torch, 3)
    y = x * 2
    z = cube(torch).apply(y)
    y.add_(1)

    def run():
        z.sum().backward()
        return x.grad

    return raised("modified by an inplace operation", run)


@program
def gradients_are_summed_to_the_shape(torch):
    class Wide(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(4, 3) * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch, 3)
    Wide.apply(x).sum().backward()
    return x.grad


@program
def an_input_is_returned(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(torch, 3)
    y = Same.apply(x)
    z = Same.apply(x * 2)
    facts = [y is x, y.requires_grad, y.is_leaf]
    (y.sum() + z.sum()).backward()
    return facts, x.grad


@program
def a_function_of_views(torch):
    x = leaf(torch, 4, 4)
    y = x * 1
    z = cube(torch).apply(y[::2, 1:])
    y[0] = 0  # the saved view shares memory
    first = raised(
        "modified by an inplace operation", lambda: (z.sum().backward(), x.grad)
    )
    w = cube(torch).apply(x.t()[1:])
    w.sum().backward()
    return first, x.grad


@program
def a_result_of_a_function_is_written(torch):
    x = leaf(torch, 3)
    y = cube(torch).apply(x)
    y.mul_(2)
    y[0] = 1
    y.sum().backward()
    return y, x.grad


@program
def straight_through_estimator(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(torch, 5, start=-2, end=2)
    by_hand = x + (x.round() - x).detach()
    ((Round.apply(x) + by_hand) ** 2).sum().backward()
    return by_hand, x.grad


@program
def gradient_reversal(torch):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return -ctx.strength * g, None

    x, w = leaf(torch, 3), leaf(torch, 3)
    features = x * 2
    label = (features * w).sum()
    domain = (Reverse.apply(features, 0.5) * w).sum()
    (label + domain).backward()
    return x.grad, w.grad


@program
def functions_need_their_context(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None, y)
            ctx.note = {"k": 3}
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, nothing, y = ctx.saved_tensors
            assert nothing is None
            return g * y * ctx.note["k"], g * x if ctx.needs_input_grad[1] else None

    x, c = leaf(torch, 3), ramp(torch, 3)
    Both.apply(x, c).sum().backward()
    out = Both.apply(c, c)
    return x.grad, out.requires_grad


@program
def a_released_function_is_refused(torch):
    x = leaf(torch, 3)
    loss = cube(torch).apply(x).sum()
    loss.backward()
    first = x.grad.clone()
    return first, raised("second time", lambda: (loss.backward(), x.grad))


@program
def forward_is_not_recorded(torch):
    seen = []

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            seen.append([torch.is_grad_enabled(), y.requires_grad])
            return y

        @staticmethod
        def backward(ctx, g):
            seen.append([torch.is_grad_enabled(), g.requires_grad])
            return g * 2

    x = leaf(torch, 2)
    y = Probe.apply(x)
    y.sum().backward()
    torch.autograd.grad(Probe.apply(x).sum(), x, create_graph=True)
    with torch.no_grad():
        constant = Probe.apply(x)
    return seen, constant.requires_grad, y.grad_fn is not None
