# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions of their own gradients, derivatives of functions, hooks."""

from typing import Any

import holdfast as torch
from holdfast import Tensor
from holdfast.autograd import Function
from holdfast.func import functional_call, grad, hessian, jacrev, vmap


class Round(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return (x * scale).round() / scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1), None


def energy(x: Tensor) -> Tensor:
    return (x**3).sum() + x.prod()


x = torch.tensor([0.3, -2.0, 0.7], requires_grad=True)
seen: list[Tensor] = []
handle = x.register_hook(lambda g: seen.append(g))
y: Tensor = Round.apply(x, 4.0)
y.sum().backward()
handle.remove()
assert x.grad is not None
print(x.grad.tolist(), len(seen))
print(grad(energy)(x.detach()), hessian(energy)(x.detach()).shape)
print(jacrev(torch.sin)(torch.zeros(2)), vmap(energy)(torch.rand(4, 3)))
layer = torch.nn.Linear(3, 2)
weights = {name: p.detach() for name, p in layer.named_parameters()}
rows = torch.rand(5, 3)
each = vmap(lambda r: functional_call(layer, weights, (r,)))(rows)
assert torch.allclose(each, layer(rows), rtol=1e-4)
hook = layer.register_forward_hook(lambda module, args, output: output * 2)
doubled = layer(rows)
hook.remove()
with torch.autograd.detect_anomaly():
    (doubled.sum() + layer(rows).mean()).backward()
with torch.set_grad_enabled(False):
    frozen = layer(rows)
print(frozen.requires_grad, torch.autograd.functional.jacobian(energy, torch.ones(3)))
