# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: control flow that depends on values, recursion, derivatives of
whole algorithms."""

from autograd_program import leaf, program, ramp


@program
def rnn_by_hand(torch):
    w, u, b = leaf(torch, 3, 3), leaf(torch, 2, 3), leaf(torch, 3)
    x = ramp(torch, 5, 4, 2)
    h = torch.zeros(4, 3, dtype=torch.float64)
    outputs = []
    for t in range(5):
        h = torch.tanh(h @ w + x[t] @ u + b)
        outputs.append(h)
    torch.stack(outputs).pow(2).mean().backward()
    return h, w.grad, u.grad, b.grad


@program
def truncated_backpropagation(torch):
    w = leaf(torch, 2, 2)
    h = torch.ones(2, dtype=torch.float64)
    gradients = []
    for step in range(3):
        h = h.detach()
        for _ in range(2):
            h = torch.sigmoid(w @ h)
        w.grad = None
        h.sum().backward()
        gradients.append(w.grad.clone())
    return gradients


@program
def a_loop_until_a_value(torch):
    x = leaf(torch, 3, start=0.5, end=1)
    y, steps = x, 0
    while y.norm() < 20:
        y = y * 1.7 + 0.1
        steps += 1
    y.sum().backward()
    return steps, y, x.grad


@program
def branches_on_values(torch):
    x = leaf(torch, 6)
    total = torch.zeros((), dtype=torch.float64)
    for element in x:
        if element > 0.5:
            total = total + element**2
        elif element.item() < -0.5:
            total = total - element.exp()
        else:
            continue
    total.backward()
    return total, x.grad


@program
def recursion(torch):
    x = leaf(torch, 8)

    def tree(part):
        if len(part) == 1:
            return part[0]
        half = len(part) // 2
        return tree(part[:half]) * 2 + tree(part[half:]).sin()

    y = tree(x)
    y.backward()
    return y, x.grad


@program
def a_deep_chain(torch):
    x = leaf(torch, 2)
    y = x
    for i in range(2000):
        y = y * 1.0005 + (0.001 if i % 3 else -0.001)
    y.sum().backward()
    return y, x.grad


@program
def newton_steps_of_second_order(torch):
    x = torch.tensor([1.5, -0.7], dtype=torch.float64, requires_grad=True)
    for _ in range(4):
        loss = (x**4).sum() + (x.prod() - 1) ** 2
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        rows = [torch.autograd.grad(g[i], x, retain_graph=True)[0] for i in range(2)]
        hessian = torch.stack(rows)
        step = torch.linalg.solve(hessian, g.detach())
        x = (x - step).detach().requires_grad_()
    return loss, x


@program
def square_root_by_iteration(torch):
    a = torch.tensor([2.0, 9.0], dtype=torch.float64, requires_grad=True)
    y = torch.ones_like(a)
    for _ in range(20):
        y = 0.5 * (y + a / y)
    y.sum().backward()
    return y, a.grad


@program
def implicit_differentiation(torch):
    # y solves y = tanh(w y + b); dy/dw from the equation, not the iterations.
    w, b = leaf(torch, 3, 3, start=-0.3, end=0.3), leaf(torch, 3)
    with torch.no_grad():
        y = torch.zeros(3, dtype=torch.float64)
        for _ in range(100):
            y = torch.tanh(w @ y + b)
    y0 = y.clone().requires_grad_()
    f = torch.tanh(w @ y0 + b)
    rows = [torch.autograd.grad(f[i], y0, retain_graph=True)[0] for i in range(3)]
    jacobian = torch.stack(rows)
    v = torch.linalg.solve((torch.eye(3, dtype=torch.float64) - jacobian).t(), 2 * y)
    f.backward(v)
    return y, w.grad, b.grad


@program
def hessian_vector_products(torch):
    x, v = leaf(torch, 4), ramp(torch, 4, start=0.1, end=1)
    loss = (x**2 * x.roll(1, 0)).sum().exp()
    (g,) = torch.autograd.grad(loss, x, create_graph=True)
    (hv,) = torch.autograd.grad(g, x, v, retain_graph=True)
    (hv2,) = torch.autograd.grad((g * v).sum(), x)
    return g, hv, hv2


@program
def maml_inner_step(torch):
    w = leaf(torch, 3)
    x, y = ramp(torch, 5, 3), ramp(torch, 5)
    total = 0
    for task in range(2):
        fast = w
        for _ in range(2):
            inner = ((x @ fast - y * (task + 1)) ** 2).mean()
            (g,) = torch.autograd.grad(inner, fast, create_graph=True)
            fast = fast - 0.1 * g
        total = total + ((x @ fast + y) ** 2).mean()
    total.backward()
    return total, w.grad


@program
def learned_learning_rate(torch):
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    w = ramp(torch, 3).requires_grad_()
    for _ in range(3):
        (g,) = torch.autograd.grad((w**2).sum(), w, create_graph=True)
        w = w - rate * g
    (w**2).sum().backward()
    return w, rate.grad


@program
def dynamic_programming_table(torch):
    cost = leaf(torch, 4, 4, start=0.1, end=2)
    table = torch.zeros(4, 4, dtype=torch.float64)
    for i in range(4):
        for j in range(4):
            ways = []
            if i:
                ways.append(table[i - 1, j])
            if j:
                ways.append(table[i, j - 1])
            best = torch.stack(ways).min() if ways else 0
            table[i, j] = cost[i, j] + best
    table[-1, -1].clone().backward()
    return table, cost.grad


@program
def attention_by_hand(torch):
    q, k, v = (leaf(torch, 2, 4, 3, start=-s, end=s) for s in (1.0, 0.5, 2.0))
    scores = q @ k.transpose(1, 2) / 3**0.5
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    scores.masked_fill_(future, float("-inf"))
    out = scores.softmax(-1) @ v
    (out**2).sum().backward()
    return out, q.grad, k.grad, v.grad


@program
def ode_by_runge_kutta(torch):
    theta = leaf(torch, 2, 2)

    def slope(y):
        return torch.tanh(theta @ y)

    y, dt = ramp(torch, 2), 0.1
    for _ in range(5):
        k1 = slope(y)
        k2 = slope(y + dt / 2 * k1)
        k3 = slope(y + dt / 2 * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    y.pow(2).sum().backward()
    return y, theta.grad


@program
def a_list_of_losses(torch):
    x = leaf(torch, 4)
    losses = []
    for i, part in enumerate(x.split(2)):
        if part.sum() > 0 or i == 0:
            losses.append((part**2).sum())
    total = torch.stack(losses).mean()
    total.backward()
    return len(losses), total, x.grad
