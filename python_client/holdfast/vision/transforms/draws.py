# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Numbers drawn from holdfast's own generator, and checks of their ranges."""

from numbers import Number

import holdfast


def uniform(low, high):
    """A number of [low, high)."""
    return holdfast.empty(1).uniform_(float(low), float(high)).item()


def below(high):
    """A whole number of [0, high)."""
    return holdfast.randint(0, high, size=(1,)).item()


def happens(p):
    """True at probability p."""
    return holdfast.rand(1).item() < p


def pair_of(value, name):
    """A sequence of two; TypeError, ValueError for anything else."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} should be a sequence of length 2. Got {type(value)}")
    if len(value) != 2:
        raise ValueError(f"{name} should be a sequence of length 2. Got {value}")
    return value


def degrees_of(value, name):
    """[low, high] of a range, or of one number for -number..number."""
    if isinstance(value, Number):
        if value < 0:
            raise ValueError(
                f"If {name} is a single number, it must be positive. Got {value}"
            )
        return [float(-value), float(value)]
    return [float(number) for number in pair_of(value, name)]
