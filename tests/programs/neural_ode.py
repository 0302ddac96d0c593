# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A vector field learned through an explicit Runge-Kutta solver."""

import numpy as np
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        ys.append(rk4_step(func, t0, t1 - t0, ys[-1]))
    return torch.stack(ys)


t = torch.linspace(0.0, 1.5, 16)
with torch.no_grad():
    true_y = odeint(Lambda(), torch.tensor([[2.0, 0.0]]), t)
print("true end", true_y[-1, 0].tolist())
func = ODEFunc()
rng = np.random.default_rng(2)
for m in func.net.modules():
    if isinstance(m, nn.Linear):
        with torch.no_grad():
            m.weight.set_(torch.from_numpy(rng.normal(0, 0.1, m.weight.shape)))
        nn.init.constant_(m.bias, val=0)
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for itr in range(1, 8):
    optimizer.zero_grad()
    s = rng.choice(10, 5, replace=False)
    batch_y0 = true_y[s]
    batch_y = torch.stack([true_y[s + i] for i in range(6)], dim=0)
    pred_y = odeint(func, batch_y0, t[:6])
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    print("Iter {:04d} | Loss {:.6f} | {} calls".format(itr, loss.item(), func.nfe))
assert pred_y.dtype == torch.float64
