# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""autograd.Function in several forms: saved tensors, once_differentiable, gradcheck."""

import math

import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class ClampedExp(Function):
    @staticmethod
    def forward(ctx, x, limit):
        result = x.clamp(max=limit).exp()
        ctx.limit = limit
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, result = ctx.saved_tensors
        return torch.where(x <= ctx.limit, grad * result, torch.zeros_like(grad)), None


class MinMax(Function):
    @staticmethod
    def forward(ctx, x):
        low, at = x.min(dim=1)
        high, _ = x.max(dim=1)
        ctx.mark_non_differentiable(at)
        ctx.save_for_backward(x, low, high)
        ctx.set_materialize_grads(False)
        return low, high, at

    @staticmethod
    def backward(ctx, g_low, g_high, g_at):
        x, low, high = ctx.saved_tensors
        grad = torch.zeros_like(x)
        if g_low is not None:
            grad = grad + (x == low[:, None]) * g_low[:, None]
        if g_high is not None:
            grad = grad + (x == high[:, None]) * g_high[:, None]
        return grad


class ScaleInPlace(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.mark_dirty(x)
        ctx.factor = factor
        return x.mul_(factor)

    @staticmethod
    def backward(ctx, grad):
        return ctx.needs_input_grad[0] and grad * ctx.factor, None


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


dtype = torch.float
device = torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 200, device=device, dtype=dtype)
y = torch.sin(x)
a = torch.full((), 0.0, device=device, dtype=dtype, requires_grad=True)
b = torch.full((), -1.0, device=device, dtype=dtype, requires_grad=True)
c = torch.full((), 0.0, device=device, dtype=dtype, requires_grad=True)
d = torch.full((), 0.3, device=device, dtype=dtype, requires_grad=True)
for t in range(50):
    P3 = LegendrePolynomial3.apply
    y_pred = a + b * P3(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    if t % 10 == 9:
        print(t, loss.item())
    loss.backward()
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 5e-6 * parameter.grad
            parameter.grad = None
print(f"y = {a.item():.4f} + {b.item():.4f} * P3({c.item():.4f} + {d.item():.4f} x)")

wide = torch.linspace(-1, 2, 6, dtype=torch.double, requires_grad=True)
print(
    gradcheck(LegendrePolynomial3.apply, (wide,)),
    gradgradcheck(LegendrePolynomial3.apply, (wide,)),
)
out = ClampedExp.apply(wide, 1.0)
print(type(out.grad_fn).__name__, out.grad_fn.name())
(grad,) = torch.autograd.grad(out.sum(), wide, create_graph=True)
try:
    grad.sum().backward()
except RuntimeError:
    print("RuntimeError")
table = torch.arange(6.0).reshape(2, 3).requires_grad_()
low, high, at = MinMax.apply(table * 2)
print(at.requires_grad, low.tolist(), high.tolist())
(high * torch.tensor([1.0, 10.0])).sum().backward()
print(table.grad.tolist())
leaf = torch.ones(3, requires_grad=True)
scaled = ScaleInPlace.apply(leaf * 1, 4.0)
StraightThrough.apply(scaled).sum().backward()
print(leaf.grad)
