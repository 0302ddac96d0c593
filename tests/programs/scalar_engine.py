# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A scalar autograd engine in Python, checked against tensors of one element."""

import math
import random

import torch


class Value:
    """A number that remembers how it came to be."""

    def __init__(self, data, _children=(), _op=""):
        self.data = data
        self.grad = 0
        self._backward = lambda: None
        self._prev = set(_children)
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def __pow__(self, other):
        out = Value(self.data**other, (self,), f"**{other}")

        def _backward():
            self.grad += other * self.data ** (other - 1) * out.grad

        out._backward = _backward
        return out

    def relu(self):
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")

        def _backward():
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t * t) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            v._backward()

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return self + (-other)

    def __rmul__(self, other):
        return self * other

    def __truediv__(self, other):
        return self * other**-1

    def __rtruediv__(self, other):
        return other * self**-1


def expression(a, b):
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + (b + a).relu()
    d = d + 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g = g + 10.0 / f
    return g * (a / 4).tanh()


a, b = Value(-4.0), Value(2.0)
g = expression(a, b)
g.backward()
x = torch.Tensor([-4.0]).double()
y = torch.Tensor([2.0]).double()
x.requires_grad = True
y.requires_grad = True
z = expression(x, y)
z.backward()
print(f"{z.data.item():.6f} {x.grad.item():.6f} {y.grad.item():.6f}")
assert abs(g.data - z.item()) < 1e-6
assert abs(a.grad - x.grad.item()) < 1e-6 and abs(b.grad - y.grad.item()) < 1e-6

random.seed(1337)
weights = [random.uniform(-1, 1) for _ in range(9)]
points = [((random.uniform(-1, 1), random.uniform(-1, 1))) for _ in range(6)]
labels = [1.0 if p[0] * p[1] > 0 else -1.0 for p in points]


def network(w, point):
    hidden = [
        (w[3 * i] * point[0] + w[3 * i + 1] * point[1] + w[3 * i + 2]).tanh()
        for i in range(2)
    ]
    return w[6] * hidden[0] + w[7] * hidden[1] + w[8]


ours = [Value(w) for w in weights]
theirs = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in weights]
for step in range(4):
    losses = []
    for parameters in (ours, theirs):
        margins = [
            (1 + -y * network(parameters, p)).relu() for p, y in zip(points, labels)
        ]
        loss = sum(margins) * (1.0 / len(margins))
        for parameter in parameters:
            parameter.grad = 0 if isinstance(parameter, Value) else None
        loss.backward()
        losses.append(float(loss.data))
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.data -= 0.2 * parameter.grad
    print("step", step, losses[1], abs(losses[0] - losses[1]) < 1e-9)
