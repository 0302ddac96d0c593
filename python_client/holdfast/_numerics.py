# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What the program lets a GPU do to results: PyTorch's switches, which are spread
over several modules, in one place. Every change goes to the sessions before their
next op; a daemon on a CPU has nothing to choose."""

from holdfast import _C

_values = {
    "matmul_tf32": False,
    "conv_tf32": True,
    "deterministic": False,
    "deterministic_algorithms": False,
    "benchmark": False,
    "cudnn": True,
}


def get(name):
    """The value of a switch."""
    return _values[name]


def put(name, value):
    """Sets a switch. TypeError if value is no bool."""
    if not isinstance(value, bool):
        raise TypeError(f"expected a bool, but got {type(value).__name__}")
    _values[name] = value
    _C.set_numerics(
        _values["matmul_tf32"],
        _values["conv_tf32"],
        _values["deterministic"] or _values["deterministic_algorithms"],
        _values["benchmark"],
        _values["cudnn"],
    )


def switch(name):
    """A property that is a switch."""
    return property(lambda self: get(name), lambda self, value: put(name, value))
