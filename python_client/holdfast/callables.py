# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensor.apply_, map_, map2_: the program's own function for each element.

The elements come to the program, which calls the function, and go back in one copy:
these wait, and are as slow as Python's loops. A function that raises leaves the tensor
as it was.
"""

from holdfast import _C
from holdfast._registry import method
from holdfast.dtypes import iinfo

Tensor = _C.Tensor


def _integer(dtype):
    """Of numbers to integers of the type, fractions cut off, as PyTorch has it."""
    most = iinfo(dtype).max
    least = iinfo(dtype).min or -most  # unsigned ones count down from 0

    def convert(value):
        number = int(value)
        if not least <= number <= most:
            raise RuntimeError(
                f"value cannot be converted to type {dtype.name} without overflow. Got "
                f"{number}."
            )
        return number if number >= 0 or least != -most else number % (most + 1)

    return convert


def _conversion(dtype):
    if dtype is _C.bool:
        kind = bool
    elif dtype.is_complex:
        kind = complex
    else:
        kind = float if dtype.is_floating_point else _integer(dtype)

    def convert(value):
        if isinstance(value, (str, bytes)):  # float() would read them
            raise TypeError(f"must be a number, not {type(value).__name__}")
        return kind(value)

    return convert


def _check(name, tensor, others, function):
    if not callable(function):
        raise TypeError(f"{type(function).__name__!r} object is not callable")
    for other in others:
        if not isinstance(other, Tensor):
            raise TypeError(
                f"{name}(): the other arguments must be Tensors, not "
                f"{type(other).__name__}"
            )
        if other.dtype is not tensor.dtype:
            raise TypeError(
                f"{name}: expected a tensor of {tensor.dtype} (got {other.dtype})"
            )
    if any(t.requires_grad for t in (tensor, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use "
            f"var.detach().{name}() instead."
        )


def _replace(name, tensor, others, function):
    _check(name, tensor, others, function)
    columns = [t.expand(tensor.shape) for t in others]
    columns = [t.reshape(-1).tolist() for t in (tensor, *columns)]
    convert = _conversion(tensor.dtype)
    values = [convert(function(*elements)) for elements in zip(*columns)]
    result = _C.tensor(values, dtype=tensor.dtype, device=tensor.device)
    return tensor.copy_(result.reshape(tensor.shape))


@method
def apply_(self, callable):
    """Replaces each element by callable(element); for tensors outside the graph."""
    return _replace("apply_", self, (), callable)


@method
def map_(self, tensor, callable):
    """Replaces each element by callable(element, the one in `tensor`), which is of the
    same type and broadcasts; for tensors outside the graph."""
    return _replace("map_", self, (tensor,), callable)


@method
def map2_(self, x, y, callable):
    """map_() with two other tensors."""
    return _replace("map2_", self, (x, y), callable)
