# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Modules with buffers, hooks, shared parts, odd containers and state_dicts."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn


class RunningScale(nn.Module):
    """Divides by a running mean of absolute values, which is a buffer."""

    def __init__(self, features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("steps", torch.tensor(0, dtype=torch.long))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.gain = nn.Parameter(torch.ones(features))
        self.register_parameter("offset", None)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.scale.lerp_(x.abs().mean(0), self.momentum)
                self.steps += 1
        return x / self.scale * self.gain

    def extra_repr(self):
        return "{}, momentum={momentum}".format(len(self.gain), **self.__dict__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            OrderedDict(
                [
                    ("fc1", nn.Linear(4, 6)),
                    ("norm", RunningScale(6)),
                    ("act", nn.PReLU()),
                ]
            )
        )
        self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 2)})
        self.heads["b"].weight = self.heads["a"].weight
        self.mix = nn.ParameterList([nn.Parameter(torch.tensor(0.5)) for _ in range(2)])

    def forward(self, x, head="a"):
        h = self.body(x)
        return sum(w * self.heads[k](h) for w, k in zip(self.mix, self.heads))


rng = np.random.RandomState(3)
net = Net()
for name, p in net.named_parameters():
    if "mix" not in name and "gain" not in name:
        p.data = torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape)).astype("f4"))
print(net)
print([n for n, _ in net.named_parameters()])
print([n for n, _ in net.named_buffers()], list(net.state_dict()))
print([type(m).__name__ for m in net.modules()], sum(1 for _ in net.children()))
seen = []


def remember(module, inputs, output):
    seen.append((type(module).__name__, tuple(output.shape)))


def double_input(module, inputs):
    return (inputs[0] * 2,)


handles = [m.register_forward_hook(remember) for m in net.body]
pre = net.body.fc1.register_forward_pre_hook(double_input)
grads = {}
net.body.fc1.register_full_backward_hook(
    lambda module, gin, gout: grads.update(fc1=gout[0].norm().item())
)
net.body.fc1.weight.register_hook(lambda g: g * 0.5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.from_numpy(rng.randn(10, 4)).float()
y = torch.from_numpy(rng.randn(10, 2)).float()
for step in range(3):
    opt.zero_grad()
    loss = nn.functional.smooth_l1_loss(net(x), y, beta=0.5)
    loss.backward()
    opt.step()
    print(step, loss.item(), grads["fc1"], net.body.norm.steps.item())
for h in handles:
    h.remove()
pre.remove()
print(seen[:3], len(seen))
net.eval()
before = net(x).sum().item()
clone = Net()
print(clone.load_state_dict(net.state_dict()))
clone.eval()
print(before == clone(x).sum().item(), clone.body.norm.scale.tolist())
print(
    clone.load_state_dict(
        {"mix.0": torch.tensor(1.0), "zzz": torch.ones(1)}, strict=False
    ).unexpected_keys
)
try:
    clone.load_state_dict({"body.fc1.weight": torch.ones(2, 2)})
except RuntimeError as error:
    print(str(error).splitlines()[-1].strip())
net.requires_grad_(False)
net.mix.requires_grad_(True)
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
print(
    net.double().body.fc1.weight.dtype,
    net.body.norm.steps.dtype,
    net.float().mix[0].dtype,
)
