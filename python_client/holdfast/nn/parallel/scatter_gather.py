# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A batch cut into parts, one per GPU, and results put together again. Parts are
copies that gradients flow through."""

import warnings

import holdfast
from holdfast import _C

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs, target_gpus, dim=0):
    """The parts, one per GPU: tensors cut along dim (fewer parts where there are fewer
    rows), lists, tuples and dicts item by item, the rest in each."""
    numbers = [_C.device_number(device) for device in target_gpus]
    return _scattered(inputs, numbers, dim)


def _scattered(value, numbers, dim):
    if isinstance(value, holdfast.Tensor):
        parts = value.chunk(len(numbers), dim) if len(numbers) > 1 else [value]
        return [_C.move_to(part, n) for part, n in zip(parts, numbers)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [type(value)(*part) for part in _columns(value, numbers, dim)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(part) for part in _columns(value, numbers, dim)]
    if isinstance(value, dict) and value:
        rows = _columns(value.values(), numbers, dim)
        return [type(value)(zip(value, row)) for row in rows]
    return [value for _ in numbers]


def _columns(values, numbers, dim):
    return zip(*(_scattered(value, numbers, dim) for value in values))


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """scatter() of arguments and named arguments: two tuples of one length."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(inputs), len(kwargs))
    inputs += [()] * (count - len(inputs))
    kwargs += [{}] * (count - len(kwargs))
    return tuple(inputs), tuple(kwargs)


def gather(outputs, target_device, dim=0):
    """The parts' results put together along dim, on the device (-1: the CPU)."""
    target = "cpu" if target_device == -1 else target_device
    return _gathered(outputs, _C.device_number(target), dim)


def _gathered(outputs, number, dim):
    first = outputs[0]
    if first is None:
        return None
    if isinstance(first, holdfast.Tensor):
        parts = [_C.move_to(part, number) for part in outputs]
        if len(parts) == 1:
            return parts[0]
        if first.dim() > 0:
            return holdfast.cat(parts, dim)
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were "
            "scalars; will instead unsqueeze and return a vector.",
            stacklevel=4,
        )
        return holdfast.stack(parts)
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, _gathered([o[key] for o in outputs], number, dim)) for key in first
        )
    columns = (_gathered(part, number, dim) for part in zip(*outputs))
    if hasattr(first, "_fields"):
        return type(first)(*columns)
    return type(first)(columns)
