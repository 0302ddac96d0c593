# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the programs of test_autograd_programs.py are written with.

A program is a function of the package: PyTorch and Holdfast run the same lines.
It returns tensors and plain values, nested as it likes.
"""

import dataclasses
from typing import Optional

PROGRAMS = {}


def program(function):
    """Decorator: one of the programs."""
    assert function.__name__ not in PROGRAMS, function.__name__
    PROGRAMS[function.__name__] = function
    return function


@dataclasses.dataclass
class Raised:
    """What a part of a program raised, and what its message must contain."""

    phrase: str
    error: Optional[Exception]


def raised(phrase, function):
    """Runs a part of a program that must fail.

    What it returns is read: Holdfast may tell of an error at the next read only.
    """
    try:
        plain(function())
    except Exception as error:  # compared by the test
        return Raised(phrase, error)
    return Raised(phrase, None)


def plain(value):
    """Lists and Python values, tensors with their type and requires_grad."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "requires_grad"):
        return [
            str(value.dtype).rsplit(".", maxsplit=1)[-1],
            list(value.shape),
            value.requires_grad,
            value.detach().tolist(),
        ]
    return value


def ramp(torch, *shape, start=-1.0, end=1.0):
    """float64 of the shape, evenly from start to end."""
    size = 1
    for n in shape:
        size *= n
    numbers = torch.linspace(start, end, size, dtype=torch.float64)
    return numbers.reshape(shape)


def leaf(torch, *shape, start=-1.0, end=1.0):
    """As ramp, a leaf that requires a gradient."""
    return ramp(torch, *shape, start=start, end=end).requires_grad_()
