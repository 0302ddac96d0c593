# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Learning to learn sine waves: gradients of gradient steps."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1, 12)
        self.fc2 = nn.Linear(12, 12)
        self.fc3 = nn.Linear(12, 1)

    def forward(self, x, params=None):
        if params is None:
            params = OrderedDict(self.named_parameters())
        for name in ("fc1", "fc2", "fc3"):
            x = F.linear(x, params[name + ".weight"], params[name + ".bias"])
            if name != "fc3":
                x = torch.tanh(x)
        return x


def adapt(net, x, y, steps=2, lr=0.1):
    params = OrderedDict(net.named_parameters())
    for _ in range(steps):
        loss = F.mse_loss(net(x, params), y)
        grads = torch.autograd.grad(loss, params.values(), create_graph=True)
        params = OrderedDict(
            (n, p - lr * g) for (n, p), g in zip(params.items(), grads)
        )
    return params


rng = np.random.RandomState(0)
net = MLP()
for p in net.parameters():
    nn.init.zeros_(p)
    p.data.add_(torch.as_tensor(rng.normal(0, 0.4, p.shape), dtype=p.dtype))
meta = torch.optim.Adam(net.parameters(), lr=1e-2)
for iteration in range(5):
    meta.zero_grad()
    outer = 0.0
    for task in range(3):
        amplitude, phase = rng.uniform(0.5, 2), rng.uniform(0, np.pi)
        x = torch.tensor(rng.uniform(-3, 3, (10, 1)), dtype=torch.float32)
        y = amplitude * torch.sin(x + phase)
        fast = adapt(net, x[:5], y[:5])
        outer = outer + F.mse_loss(net(x[5:], fast), y[5:])
    (outer / 3).backward()
    meta.step()
    print("iteration", iteration, "outer loss", outer.item() / 3)

# Hessian-vector products and a Jacobian by the same means.
w = torch.tensor([1.0, 2.0, -1.0], dtype=torch.double, requires_grad=True)
f = (w**3).sum() + w.prod()
(g,) = torch.autograd.grad(f, w, create_graph=True)
hv = torch.autograd.grad(
    g, w, grad_outputs=torch.tensor([1.0, 0.0, 2.0]).double(), retain_graph=True
)[0]
print("hvp", hv.tolist())
print(
    torch.autograd.functional.hessian(lambda v: (v**3).sum() + v.prod(), w)
    .diagonal()
    .tolist()
)
print(
    torch.autograd.functional.jacobian(
        lambda v: torch.stack([v.sum(), v.prod()]), w
    ).tolist()
)
unused = torch.zeros(1, requires_grad=True)
print(torch.autograd.grad(f, [w, unused], allow_unused=True)[1])
