# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What tensors, modules and graph nodes look like."""

import numpy as np
import torch
from torch import nn

x = torch.tensor([[1.0, -2.5], [3.25, 0.0]], requires_grad=True)
print(x)
print(x.detach(), x.shape, x.dtype, x.device, x.size(0), x.type())
print(torch.arange(12).reshape(3, 4))
print(torch.tensor([1e-6, 1.0, 1e6]), torch.tensor([float("nan"), float("inf"), 1]))
print(
    torch.tensor([True, False]), torch.tensor(3), torch.tensor(2.5, dtype=torch.float64)
)
print(torch.zeros(0, 3), torch.empty(0, dtype=torch.int64))
print(torch.linspace(0, 1, 2000))
print(torch.arange(60).reshape(3, 20))
print(torch.tensor([1 + 2j, -0.5j]))
torch.set_printoptions(precision=2, sci_mode=False)
print(torch.tensor([3.14159, 2.71828e5]))
torch.set_printoptions(profile="default")
y = x * 2
z = y.sum()
for name, value in [
    ("y", y),
    ("z", z),
    ("relu", torch.relu(x)),
    ("mean", x.mean()),
    ("exp", x.exp()),
    ("view", x.view(-1)),
    ("pow", x**2),
    ("log_softmax", nn.functional.log_softmax(x, 1)),
    ("nll", nn.functional.nll_loss(x, torch.tensor([0, 1]))),
    ("cat", torch.cat([x, x])),
    ("index", x[0]),
    ("mm", torch.mm(x, x)),
    ("conv", nn.functional.conv2d(x[None, None], torch.ones(1, 1, 1, 1))),
]:
    print(name, value.grad_fn.name(), type(value.grad_fn).__name__)
print(y)
print(z)
print(
    "leaf",
    x.grad_fn,
    x.is_leaf,
    y.is_leaf,
    y.requires_grad,
    z.grad_fn.next_functions[0][0].name(),
)
print(
    repr(torch.float32),
    str(torch.int64),
    torch.device("cpu"),
    repr(torch.device("cuda:1")),
)
print(torch.Size([2, 3]), torch.Size([2, 3]).numel(), torch.ones(2, 3).size())
print(nn.Parameter(torch.ones(2)), nn.Linear(2, 1).weight.shape)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, stride=2, padding=1, bias=False),
    nn.BatchNorm2d(4),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.25),
    nn.LSTM(4, 8, num_layers=2, batch_first=True, bidirectional=True),
    nn.MultiheadAttention(8, 2),
    nn.Embedding(10, 3, padding_idx=0),
    nn.LayerNorm(8),
    nn.Linear(16, 2),
    nn.LeakyReLU(0.1),
    nn.Upsample(scale_factor=2),
)
print(model)
print(torch.optim.Adam(model.parameters(), lr=1e-3))
print(torch.distributions.Normal(torch.tensor(0.0), torch.tensor(1.0)))
print(f"{z.item():.3f} {z:.2f} {x[0, 1]:>8.1f}", np.array(x.detach()).dtype)
print(torch.finfo(torch.float32).eps, torch.iinfo(torch.int32).max)
try:
    torch.ones(2, requires_grad=True).numpy()
except RuntimeError as error:
    print(type(error).__mro__[-4].__name__, error)
