# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: hooks on gradients."""

from autograd_program import leaf, program, raised, ramp


@program
def hooks_run_in_order(torch):
    x = leaf(torch, 3)
    log = []
    y = x * 2
    y.register_hook(lambda g: log.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: log.append(("third", g.tolist())))
    x.register_hook(lambda g: log.append(("leaf", g.tolist())))
    y.sum().backward()
    return log, x.grad


@program
def hooks_are_removed(torch):
    x = leaf(torch, 3)
    log = []
    handle = x.register_hook(lambda g: log.append("a"))
    x.register_hook(lambda g: log.append("b"))
    x.sum().backward()
    handle.remove()
    handle.remove()
    x.sum().backward()
    with x.register_hook(lambda g: g * 100):
        x.sum().backward()
    x.sum().backward()
    return log, x.grad


@program
def a_hook_sees_the_whole_gradient_once(torch):
    x = leaf(torch, 3)
    log = []
    y = x * 2
    y.register_hook(lambda g: log.append(g.tolist()))
    (y.sum() + (y**2).sum() + y[0]).backward()
    return log, x.grad


@program
def hooks_on_a_view(torch):
    x = leaf(torch, 4)
    log = []
    y = x * 2
    view = y[1:3]
    view.register_hook(lambda g: g * 7)
    y.register_hook(lambda g: log.append(g.tolist()))
    (view**2).sum().backward()
    return log, x.grad


@program
def a_hook_then_a_write(torch):
    x = leaf(torch, 3)
    log = []
    y = x * 2
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    y.sum().backward()
    return log, x.grad


@program
def a_hook_on_a_base_then_a_write_through_a_view(torch):
    x = leaf(torch, 4)
    log = []
    y = x * 2
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y[:2].mul_(3)
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    (y**2).sum().backward()
    return log, x.grad


@program
def a_hook_on_a_view_of_a_written_base(torch):
    x = leaf(torch, 4)
    log = []
    y = x * 2
    view = y[2:]
    view.register_hook(lambda g: log.append(("old", g.tolist())))
    y.mul_(3)
    view.register_hook(lambda g: log.append(("new", g.tolist())))
    view.sum().backward()
    return log, x.grad


@program
def a_hook_is_removed_after_a_write(torch):
    x = leaf(torch, 3)
    log = []
    y = x * 2
    handle = y.register_hook(lambda g: log.append("gone"))
    y.add_(1)
    handle.remove()
    y.sum().backward()
    return log, x.grad


@program
def hooks_and_retained_gradients(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return y.grad, x.grad


@program
def hooks_and_asked_gradients(torch):
    x = leaf(torch, 3)
    log = []
    y = x * 2
    y.register_hook(lambda g: g * 5)
    x.register_hook(lambda g: log.append(g.tolist()))
    gy, gx = torch.autograd.grad((y**2).sum(), [y, x])
    return gy, gx, log


@program
def a_hook_off_the_path_stays_silent(torch):
    x, z = leaf(torch, 3), leaf(torch, 3)
    log = []
    x.register_hook(lambda g: log.append("x"))
    z.register_hook(lambda g: log.append("z"))
    y = x * z
    y.register_hook(lambda g: log.append("y"))
    y.sum().backward(inputs=[z])
    return log, x.grad is None, z.grad


@program
def a_leaf_hook_before_accumulation(torch):
    x = leaf(torch, 3)
    x.register_hook(lambda g: g.clamp(-0.5, 0.5))
    (x**2).sum().backward()
    (x**2).sum().backward()
    return x.grad


@program
def hooks_that_raise(torch):
    x = leaf(torch, 3)

    def bad(gradient):
        raise KeyError("from the hook")

    handle = x.register_hook(bad)
    first = raised("from the hook", lambda: (x.sum().backward(), x.grad))
    handle.remove()
    x.sum().backward()
    return first, x.grad


@program
def hooks_that_return_nonsense(torch):
    x = leaf(torch, 3)
    y = x * 2
    y.register_hook(lambda g: g[:2])
    first = raised("", lambda: (y.sum().backward(), x.grad))
    z = x * 2
    z.register_hook(lambda g: "no tensor")
    second = raised("", lambda: (z.sum().backward(), x.grad))
    return first, second


@program
def hooks_need_a_gradient(torch):
    constant = ramp(torch, 3)
    return raised("cannot register a hook", lambda: constant.register_hook(lambda g: g))


@program
def a_hook_that_differentiates(torch):
    x = leaf(torch, 3)
    inner = []

    def hook(gradient):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (z**2).sum().backward()
        inner.append(z.grad.tolist())
        return gradient + z.grad

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    return inner, x.grad


@program
def hooks_with_create_graph(torch):
    x = leaf(torch, 3)
    y = x**2
    y.register_hook(lambda g: g * x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h


@program
def hooks_survive_retain_graph(torch):
    x = leaf(torch, 2)
    count = []
    y = x**2
    y.register_hook(lambda g: count.append(1))
    loss = y.sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return len(count), x.grad


@program
def hooks_on_the_root(torch):
    x = leaf(torch, 3)
    loss = (x * 2).sum()
    loss.register_hook(lambda g: g * 4)
    loss.backward()
    return x.grad


@program
def grad_mode_in_hooks(torch):
    x = leaf(torch, 3)
    seen = []

    def hook(gradient):
        seen.append([torch.is_grad_enabled(), gradient.requires_grad])

    y = x**2
    y.register_hook(hook)
    y.sum().backward(retain_graph=True)
    torch.autograd.grad((y**2).sum(), x, create_graph=True)
    return seen


@program
def gradients_by_name(torch):
    model = torch.nn.Linear(2, 1).double()
    with torch.no_grad():
        model.weight.copy_(ramp(torch, 1, 2))
        model.bias.zero_()
    norms = {}
    for name, parameter in model.named_parameters():
        parameter.register_hook(
            lambda g, name=name: norms.__setitem__(name, g.norm().item())
        )
    model(ramp(torch, 4, 2)).pow(2).sum().backward()
    return dict(sorted(norms.items())), model.weight.grad
