# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Whole modules that are saved, loaded, copied and compared."""

import copy
import io
import pickle

import numpy as np
import torch
import torch.nn as nn


class Swish(nn.Module):
    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)


class Model(nn.Module):
    def __init__(self, widths=(4, 8, 2)):
        super().__init__()
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), Swish(1.5)]
        self.layers = nn.ModuleList(layers[:-1])
        self.register_buffer("mean", torch.zeros(widths[0]))
        self.history = [("made", widths)]

    def forward(self, x):
        x = x - self.mean
        for layer in self.layers:
            x = layer(x)
        return x


rng = np.random.default_rng(9)
model = Model()
for p in model.parameters():
    p.data = torch.tensor(rng.uniform(-0.5, 0.5, p.shape), dtype=torch.float32)
model.mean += 0.25
x = torch.tensor(rng.standard_normal((3, 4)), dtype=torch.float32)
before = model(x)
print("before", before.tolist())
file = io.BytesIO()
pickle.dump(model, file)
file.seek(0)
loaded = pickle.load(file)
loaded.eval()
print(
    "saved whole", torch.equal(before, loaded(x)), loaded.history, type(loaded) is Model
)
twin = pickle.loads(pickle.dumps(model))
print("pickled", torch.equal(before, twin(x)), [n for n, _ in twin.named_buffers()])
copied = copy.deepcopy(model)
copied.layers[0].weight.data.zero_()
print(
    "deep copies are apart",
    torch.equal(before, model(x)),
    copied(x).abs().sum().item() > 0,
)
shallow = copy.copy(model)
print("shallow ones are not", shallow.layers[0].weight is model.layers[0].weight)
optimizer = torch.optim.SGD(loaded.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    loss = (loaded(x) - 1).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, loss.item())
tensors = {"a": torch.arange(4).view(2, 2).t(), "b": torch.tensor(True), "c": x[0]}
again = pickle.loads(pickle.dumps(tensors))
print(again["a"].tolist(), again["b"].item(), torch.equal(again["c"], x[0]))
parameter = pickle.loads(pickle.dumps(model.layers[0].bias))
print(type(parameter).__name__, parameter.requires_grad, parameter.is_leaf)
