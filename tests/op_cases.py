# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The one list of op cases.

A row drives the forward check against NumPy, the gradient check against finite
differences, the equality of shared memory and gRPC (test_op_cases.py), and the
micro-benchmark (benchmarks/ops.py). Every op of the table has at least one row,
which test_op_cases.py enforces.

    case("op", ours, reference, inputs..., grad=(0, 1))

`ours` gets the holdfast module and tensors, `reference` NumPy arrays of the
same values. An input is a shape (uniform in [-2, 2], float64), or an array.
A composite has rows under its public name ("logsumexp"; "nn.functional.gelu" for
what is not `holdfast.<name>`). Each family has a file op_cases_<family>.py, and
a line in all_op_cases.py.

`grad` lists the inputs to differentiate; an empty tuple: not differentiable.
"""

import dataclasses
import math

import numpy as np

CASES = []


@dataclasses.dataclass
class Case:
    op: str
    name: str
    ours: object
    reference: object
    inputs: list
    grad: tuple
    second: bool  # gradients of gradients are checked as well
    random: bool

    def arrays(self):
        rng = np.random.default_rng(abs(hash_text(self.name)) % 2**32)
        return [
            x.copy() if isinstance(x, np.ndarray) else rng.uniform(-2, 2, x)
            for x in self.inputs
        ]


def hash_text(text):
    """Equal in every process, which hash() is not."""
    value = 0
    for c in text:
        value = (value * 131 + ord(c)) % (1 << 61)
    return value


def case(op, ours, reference, *inputs, grad=None, label="", second=True, random=False):
    floats = [
        i
        for i, x in enumerate(inputs)
        if not isinstance(x, np.ndarray) or x.dtype == np.float64
    ]
    shapes = ",".join(
        str(list(x.shape if isinstance(x, np.ndarray) else x)).replace(" ", "")
        for x in inputs
    )
    name = f"{op}({shapes}){label}"
    twins = sum(c.name.split(" #")[0] == name for c in CASES)
    name += f" #{twins + 1}" if twins else ""
    grad = tuple(floats) if grad is None else tuple(grad)
    CASES.append(Case(op, name, ours, reference, list(inputs), grad, second, random))


def away_from(points, shape, low=-2, high=2, margin=0.05):
    """Values that keep clear of kinks and poles, where no derivative is."""
    rng = np.random.default_rng(17)
    x = rng.uniform(low, high, shape)
    for p in points:
        near = np.abs(x - p) < margin
        x = np.where(near, p + margin * 2, x)
    return x


def ints(shape, low=-5, high=6, seed=3):
    return np.random.default_rng(seed).integers(low, high, shape)


def distinct(shape, seed=5):
    """All different by far more than a finite difference."""
    n = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(n).reshape(shape) * 0.1 - 1.0


positive = away_from([], (3, 4), 0.2, 3)
nonzero = away_from([0], (3, 4))
erf = np.vectorize(math.erf, otypes=[float])
