# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators that are several of the daemon's ops: functions of the package holdfast on
the same tensors, outside of its own graph."""

import functools

import holdfast
import torch
from holdfast import _C, aten as _aten

from holdfast_torch import _torch

_ops = _C.ops
_DTYPES = {
    getattr(torch, n): getattr(holdfast, n)
    for n in (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
        "complex64 complex128"
    ).split()
}
# Arguments that say where and how a result lies.
_PLACES = ("device", "layout", "pin_memory", "memory_format", "generator")

DECLARED = {}


def declare(*names):
    """The function is the kernel of these operators, of torch.Tensors."""

    def keep(function):
        for name in names:
            DECLARED[name] = function
        return function

    return keep


def declare_holdfast(*names):
    """The function is the kernel of these operators, of holdfast's tensors."""

    def keep(function):
        kernel = _composite(function, function.__name__)
        for name in names:
            DECLARED[name] = kernel
        return kernel

    return keep


def declared(name):
    return name in DECLARED


def to_holdfast(value):
    if isinstance(value, torch.Tensor):
        if value.device.type == "holdfast":
            # Products of matrices get lazy conjugates and negatives.
            plain = value.detach().resolve_conj().resolve_neg()
            return _torch.to_holdfast(plain)
        return holdfast.from_numpy(value.detach().resolve_conj().resolve_neg().numpy())
    if isinstance(value, torch.dtype):
        return _DTYPES[value]
    if isinstance(value, (list, tuple)):
        return type(value)(to_holdfast(v) for v in value)
    return value


def tensors_of(values):
    for value in values:
        if isinstance(value, holdfast.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def from_holdfast(value, inputs=()):
    if isinstance(value, holdfast.Tensor):
        # A result may not share memory with an argument: it is no view to PyTorch.
        memory = _torch.memory_of(value)
        if any(memory == _torch.memory_of(i) for i in tensors_of(inputs)):
            value = value.clone()
        return _torch.from_holdfast(value)
    if isinstance(value, (list, tuple)):
        return tuple(from_holdfast(v, inputs) for v in value)
    return value


def _composite(function, name):
    def kernel(*args, **kwargs):
        args = [to_holdfast(a) for a in args]
        kwargs = {k: to_holdfast(v) for k, v in kwargs.items() if k not in _PLACES}
        with holdfast.no_grad():
            result = function(*args, **kwargs)
        return from_holdfast(result, args)

    kernel.__name__ = name
    return kernel


def gradients(function, grads, *inputs):
    """The gradients of function(*inputs) by the daemon, which computes it again for
    them; None for an input of None, or that has none. Of holdfast's tensors."""
    with holdfast.enable_grad():
        leaves = [None if x is None else x.detach().requires_grad_() for x in inputs]
        outputs = function(*leaves)
        wanted = [x for x in leaves if x is not None]
        found = iter(holdfast.autograd.grad(outputs, wanted, grads, allow_unused=True))
    return tuple(None if x is None else next(found) for x in leaves)


def in_float64(function, *tensors):
    """function(*tensors); integers' in float64, which has all of them below 2**53, and
    the results converted back. Of holdfast's tensors."""
    dtype = tensors[0].dtype
    if tensors[0].is_floating_point() or tensors[0].is_complex():
        return function(*tensors)
    wide = (None if t is None else _ops.to(t, holdfast.float64) for t in tensors)
    return _ops.to(function(*wide), dtype)


@functools.lru_cache(None)
def find_function(base):
    if base.startswith("_foreach") or base.startswith("_fused"):
        return None
    try:
        return getattr(_aten, base)
    except AttributeError:
        return None


def find(name, schema):
    """The kernel of an operator, None if there is none."""
    if name in DECLARED:
        return DECLARED[name]
    base = name.split(".")[0]
    function = find_function(base)
    return None if function is None else _composite(function, name)


def in_place(name):
    """For calls of an in-place operator that the op cannot take."""
    base = name.split(".")[0]
    function = find_function(base[:-1])
    if function is None:
        return None
    kernel = _composite(function, name)

    def write(self, *args, **kwargs):
        return self.copy_(kernel(self, *args, **kwargs))

    return write
