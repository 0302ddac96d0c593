# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Optimizers written against torch.optim.Optimizer."""

import numpy as np
import torch
from torch.optim.optimizer import Optimizer, required


class SignMomentum(Optimizer):
    """The sign of an interpolated momentum, with decoupled weight decay."""

    def __init__(self, params, lr=required, betas=(0.9, 0.99), weight_decay=0.0):
        if lr is not required and lr <= 0.0:
            raise ValueError("Invalid learning rate: {}".format(lr))
        defaults = dict(lr=lr, betas=betas, weight_decay=weight_decay)
        super(SignMomentum, self).__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                state["step"] += 1
                exp_avg = state["exp_avg"]
                update = (
                    exp_avg.clone().mul_(beta1).add(p.grad, alpha=1 - beta1).sign_()
                )
                p.add_(update, alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss


class Lookahead:
    """Slow weights that follow an inner optimizer every k steps."""

    def __init__(self, inner, k=2, alpha=0.5):
        self.inner, self.k, self.alpha, self.count = inner, k, alpha, 0
        self.slow = [
            [p.clone().detach() for p in group["params"]]
            for group in inner.param_groups
        ]

    def step(self):
        self.inner.step()
        self.count += 1
        if self.count % self.k == 0:
            for group, slow in zip(self.inner.param_groups, self.slow):
                for p, q in zip(group["params"], slow):
                    q.data.add_(p.data - q.data, alpha=self.alpha)
                    p.data.copy_(q.data)


rng = np.random.RandomState(1)
X = torch.tensor(rng.randn(64, 5), dtype=torch.float32)
target = X @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.7
model = torch.nn.Linear(5, 1)
with torch.no_grad():
    model.weight.zero_()
    model.bias.zero_()
opt = SignMomentum(
    [
        {"params": [model.weight], "weight_decay": 0.01},
        {"params": [model.bias], "lr": 0.02},
    ],
    lr=0.05,
)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=lambda e: 1 / (1 + 0.1 * e))


def closure():
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(X).squeeze(-1), target)
    loss.backward()
    return loss


for it in range(20):
    loss = opt.step(closure)
    sched.step()
    if it % 5 == 0:
        print(it, round(float(loss), 5), [round(g["lr"], 5) for g in opt.param_groups])
saved = opt.state_dict()
print(sorted(saved), sorted(saved["state"]), saved["param_groups"][0]["params"])
other = SignMomentum([{"params": [model.weight]}, {"params": [model.bias]}], lr=1.0)
other.load_state_dict(saved)
print(other.param_groups[0]["weight_decay"], other.state[model.weight]["step"])
outer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5))
for it in range(6):
    outer.inner.zero_grad()
    loss = ((model(X)[:, 0] - target) ** 2).mean()
    loss.backward()
    outer.step()
    print("lookahead", it, loss.item())
try:
    SignMomentum(model.parameters(), lr=-1.0)
except ValueError as error:
    print(error)
