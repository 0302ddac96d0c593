# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: no_grad, enable_grad, inference_mode, alone and nested."""

from autograd_program import leaf, program, raised, ramp


@program
def modes_nest(torch):
    x = leaf(torch, 2)
    seen = []
    with torch.no_grad():
        seen.append((x * 2).requires_grad)
        with torch.enable_grad():
            y = x * 2
            seen.append(y.requires_grad)
            with torch.set_grad_enabled(False):
                seen.append((x * 2).requires_grad)
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    seen.append(torch.is_grad_enabled())
    y.sum().backward()
    return seen, x.grad


@program
def modes_as_decorators(torch):
    x = leaf(torch, 2)

    @torch.no_grad()
    def constant(t):
        """Doc."""
        return t * 2

    @torch.enable_grad()
    def recorded(t):
        return t * 3

    with torch.no_grad():
        inner = recorded(x)
    outer = constant(x)
    inner.sum().backward()
    return outer.requires_grad, x.grad, constant.__name__, constant.__doc__


@program
def modes_on_generators(torch):
    x = leaf(torch, 2)

    @torch.no_grad()
    def numbers():
        for i in range(3):
            yield (x * i).requires_grad, torch.is_grad_enabled()

    seen = []
    for item in numbers():
        seen.append((item, torch.is_grad_enabled(), (x * 2).requires_grad))
    return seen


@program
def errors_leave_the_mode(torch):
    x = leaf(torch, 2)
    try:
        with torch.no_grad():
            raise ValueError("stop")
    except ValueError:
        pass
    return torch.is_grad_enabled(), (x * 2).requires_grad


@program
def set_grad_enabled_as_a_function(torch):
    x = leaf(torch, 2)
    torch.set_grad_enabled(False)
    off = (x * 2).requires_grad
    torch.set_grad_enabled(True)
    return off, (x * 2).requires_grad


@program
def inference_mode_values(torch):
    x = leaf(torch, 3)
    with torch.inference_mode():
        y = x * 2
        y.add_(1)
        facts = [y.requires_grad, torch.is_grad_enabled()]
    return facts, y.tolist()


@program
def a_view_made_under_no_grad(torch):
    x = leaf(torch, 3)
    y = x * 2
    with torch.no_grad():
        view = y[:2]
    facts = [view.requires_grad, y.requires_grad]
    refused = raised("no_grad mode", lambda: view.mul_(x[:2]))
    with torch.no_grad():
        view.zero_()
    return facts, refused, y


@program
def a_write_under_no_grad_keeps_the_history(torch):
    x = leaf(torch, 3)
    y = x * 2
    with torch.no_grad():
        y.add_(100)
    facts = [y.requires_grad, y.is_leaf]
    y.sum().backward()
    return facts, y, x.grad


@program
def new_leaves_under_no_grad(torch):
    with torch.no_grad():
        x = leaf(torch, 3)
        w = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        y = x * w
    facts = [x.requires_grad, w.requires_grad, y.requires_grad]
    (x * w).sum().backward()
    return facts, x.grad, w.grad


@program
def constants_need_nothing(torch):
    a, b = ramp(torch, 3), ramp(torch, 3)
    c = a * b
    facts = [c.requires_grad, c.is_leaf, c.grad_fn is None, c.grad is None]
    return facts


@program
def part_of_a_network_is_constant(torch):
    x, w = leaf(torch, 3), leaf(torch, 3)
    with torch.no_grad():
        scale = (x**2).sum().sqrt()
    (x * w / scale).sum().backward()
    return x.grad, w.grad


@program
def backward_inside_no_grad(torch):
    x = leaf(torch, 3)
    loss = (x**2).sum()
    with torch.no_grad():
        loss.backward()
    return x.grad, x.grad.requires_grad


@program
def anomaly_mode_names_nan(torch):
    x = torch.tensor([-1.0, 1.0], requires_grad=True)

    def run():
        with torch.autograd.detect_anomaly():
            (x.sqrt() * 0).sum().backward()
        return x.grad

    return raised("nan values", run)
