# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Least squares and style-like losses with LBFGS and its closure, in float64."""

import numpy as np
import torch
from torch import nn, optim

rng = np.random.RandomState(2)
T, L, N = 20, 40, 6
x = np.empty((N, L), "int64")
x[:] = np.array(range(L)) + rng.randint(-4 * T, 4 * T, N).reshape(N, 1)
data = np.sin(x / 1.0 / T).astype("float64")


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 7)
        self.lstm2 = nn.LSTMCell(7, 7)
        self.linear = nn.Linear(7, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


input = torch.from_numpy(data[2:, :-1])
target = torch.from_numpy(data[2:, 1:])
test_input = torch.from_numpy(data[:2, :-1])
test_target = torch.from_numpy(data[:2, 1:])
seq = Sequence()
seq.double()
for p in seq.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.37, 0.37, p.size())))
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
for i in range(2):
    print("STEP: ", i)

    def closure():
        optimizer.zero_grad()
        out = seq(input)
        loss = criterion(out, target)
        print("loss:", loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        future = 5
        pred = seq(test_input, future=future)
        print("test loss:", criterion(pred[:, :-future], test_target).item())
        print("ahead", pred.detach().numpy()[0, -3:].tolist())

# Rosenbrock's valley with a line search.
point = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
search = optim.LBFGS([point], max_iter=60, line_search_fn="strong_wolfe")


def valley():
    search.zero_grad()
    value = (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2
    value.backward()
    return value


search.step(valley)
print("minimum", [round(v, 6) for v in point.tolist()])
