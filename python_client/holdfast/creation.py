# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors from nothing: zeros, ranges, random numbers."""

import builtins
import functools
import math
import re

from holdfast import _C
from holdfast._registry import FUNCTIONS, function, method, overload
from holdfast.errors import HoldfastError, OpError, say_called
from holdfast.memory_formats import in_order, order_of, preserve_format

_ops = _C.ops


def _sizes(size):
    """The sizes of `f(2, 3)` and `f((2, 3))` alike."""
    if len(size) == 1 and not isinstance(size[0], builtins.int):
        return size[0]
    return size


def _marked(tensor, requires_grad):
    return tensor.requires_grad_() if requires_grad else tensor


@function(out=True)
def zeros(*size, dtype=None, requires_grad=False, device=None, **ignored):
    """Zeros of the given size."""
    size = ignored.pop("size", None) or _sizes(size)
    _ignore("zeros", ignored)
    try:
        return _ops.full(
            size, 0.0, dtype=dtype, requires_grad=requires_grad, device=device
        )
    except (HoldfastError, TypeError) as error:
        _filled(error, "zeros")
        raise


@function(out=True)
def ones(*size, dtype=None, requires_grad=False, device=None, **ignored):
    """Ones of the given size."""
    size = ignored.pop("size", None) or _sizes(size)
    _ignore("ones", ignored)
    try:
        return _ops.full(
            size, 1.0, dtype=dtype, requires_grad=requires_grad, device=device
        )
    except (HoldfastError, TypeError) as error:
        _filled(error, "ones")
        raise


def _filled(error, name):
    """Makes full()'s error that of a function which chooses the value."""
    say_called(error, "full", name)
    if isinstance(error, HoldfastError):
        error.args = (re.sub(r", fill_value=[^,]*", "", str(error)),)


def _new(name, op):
    """Decorator: what the function `op` refuses, the method `name` has refused."""

    def decorate(f):
        @functools.wraps(f)
        def new(self, *args, **kwargs):
            try:
                return f(self, *args, **kwargs)
            except (HoldfastError, TypeError) as error:
                say_called(error, op, name)
                raise

        return new

    return decorate


def _ignore(name, arguments):
    """Accepts what says where or how elements lie; nothing else."""
    for argument in arguments:
        if argument not in ("layout", "pin_memory", "memory_format"):
            raise TypeError(f"{name}() got an unexpected keyword argument '{argument}'")


def _device_of(tensor):
    """The tensor's device, for device=; None where that says the same."""
    number = tensor._device_number
    return None if number == _C.default_device() else tensor.device


def _with_device(tensor, options):
    if options.get("device") is None:
        options["device"] = _device_of(tensor)
    return options


@overload("full")
def _full(*args, inplace_=False, **options):
    value = args[1] if len(args) > 1 else options.get("fill_value")
    if not isinstance(value, complex):
        return _ops.full(*args, **options)  # says what does not fit
    size = args[0] if args else options["size"]
    dtype, device = (options.get(key) for key in ("dtype", "device"))
    number = _C.tensor(value, dtype=dtype, device=device)
    result = _ops.full(size, 0, dtype=number.dtype, device=device).copy_(number)
    return _marked(result, options.get("requires_grad"))


def _like(name, fill):
    def like(
        input,
        *,
        dtype=None,
        requires_grad=False,
        device=None,
        memory_format=preserve_format,
        **ignored,
    ):
        if not isinstance(input, _C.Tensor):
            kind = type(input).__name__
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {kind}")
        _ignore(name, ignored)
        dtype = dtype or input.dtype
        device = _device_of(input) if device is None else device
        order = order_of(input, memory_format)
        try:
            if order is None:
                return fill(
                    tuple(input.shape),
                    dtype=dtype,
                    requires_grad=requires_grad,
                    device=device,
                )
            size = tuple(input.shape[dim] for dim in order)
            result = in_order(fill(size, dtype=dtype, device=device), order)
        except HoldfastError as error:
            say_called(error, name[:-5], name)
            raise
        return _marked(result, requires_grad)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"{name[:-5]}() with the size, type and strides of input."
    FUNCTIONS[name] = like
    return like


_like("zeros_like", zeros)
_like("ones_like", ones)
_like("empty_like", _ops.empty)
_like("rand_like", _ops.rand)
_like("randn_like", _ops.randn)


@function(out=True)
def full_like(input, fill_value, *, dtype=None, **options):
    """full() with the size, type and strides of input."""
    order = order_of(input, options.pop("memory_format", preserve_format))
    requires_grad = options.pop("requires_grad", False)
    _with_device(input, options)
    size = tuple(input.shape)
    if order is not None:
        size = tuple(size[dim] for dim in order)
    try:
        result = _ops.full(size, fill_value, dtype=dtype or input.dtype, **options)
    except (HoldfastError, TypeError) as error:
        say_called(error, "full", "full_like")
        raise
    if order is not None:
        result = in_order(result, order)
    return _marked(result, requires_grad)


@function(out=True)
def arange(start=None, end=None, step=1, *, dtype=None, requires_grad=False, **options):
    """Values start, start+step, ... below end, 1-D."""
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange() missing required argument: 'end'")
    start = 0 if start is None else start
    device = options.pop("device", None)
    _ignore("arange", options)
    result = _ops.arange(
        _number(start), _number(end), _number(step), dtype=dtype, device=device
    )
    return _marked(result, requires_grad)


def _number(value):
    return value.item() if isinstance(value, _C.Tensor) else value


@function(out=True)
def linspace(start, end, steps, *, dtype=None, requires_grad=False, **options):
    """steps evenly spaced values from start to end, both included."""
    if isinstance(start, complex) or isinstance(end, complex):
        start, end = complex(start), complex(end)
        parts = [
            linspace(first, last, steps, dtype=_C.float64, **options)
            for first, last in ((start.real, end.real), (start.imag, end.imag))
        ]
        result = _ops.view_as_complex(_ops.cat([p.unsqueeze(-1) for p in parts], -1))
        dtype = dtype or _C.tensor(start).dtype
        return _marked(_ops.to(result, dtype), requires_grad)
    device = options.pop("device", None)
    _ignore("linspace", options)
    start, end = float(start), float(end)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if steps < 2:
        few = _ops.full((steps,), start, dtype=dtype, device=device)
        return _marked(few, requires_grad)
    # Each half is counted from its own end, so that both ends are exact.
    step = (end - start) / (steps - 1)
    index = _ops.arange(0, steps, 1, dtype=_C.float64, device=device)
    result = _ops.where(
        index < steps / 2, index * step + start, (index - (steps - 1)) * step + end
    )
    return _marked(_ops.to(result, dtype or _C.default_dtype()), requires_grad)


@function(out=True)
def logspace(start, end, steps, base=10.0, *, dtype=None, **options):
    """Powers of base with exponents from linspace()."""
    exponents = linspace(start, end, steps, dtype=_C.float64, **options)
    return _ops.to(_ops.exp(exponents * math.log(base)), dtype or _C.default_dtype())


@function(out=True)
def randint(
    low=None,
    high=None,
    size=None,
    *,
    generator=None,
    dtype=None,
    requires_grad=False,
    **options,
):
    """Uniform random integers in [low, high), or [0, low) with two arguments."""
    if high is None:
        low, high = None, low  # randint(high, size=...)
    elif low is not None and size is None:
        low, high, size = None, low, high  # randint(high, size)
    for name, value in (("high", high), ("size", size)):
        if value is None:
            raise TypeError(f"randint() missing required argument: '{name}'")
    low = 0 if low is None else low
    device = options.pop("device", None)
    _ignore("randint", options)
    result = _ops.randint(
        low, high, size, dtype=dtype, generator=generator, device=device
    )
    return _marked(result, requires_grad)


@function
def randint_like(input, low=None, high=None, *, dtype=None, **options):
    """randint() with the size and type of input."""
    if high is None:
        low, high = 0, low  # randint_like(input, high)
    options.pop("memory_format", None)
    _with_device(input, options)
    return randint(low, high, tuple(input.shape), dtype=dtype or input.dtype, **options)


@function
def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A 0-d tensor, float32 unless dtype says otherwise."""
    return _C.tensor(
        s, dtype=dtype or _C.default_dtype(), device=device, requires_grad=requires_grad
    )


@function
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-D tensor with `count` elements (all that there are if negative) of a
    bytes-like object from byte `offset` on; copied. ValueError where the bytes are
    not there."""
    view = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(view):
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer "
            f"length ({len(view)} bytes)"
        )
    view = view[offset:]
    wanted = len(view) if count < 0 else count * dtype.itemsize
    if wanted > len(view):
        raise ValueError(
            f"requested buffer length ({wanted} bytes) after offset ({offset} bytes) "
            f"must not be greater than actual buffer length ({len(view)} bytes)"
        )
    if wanted % dtype.itemsize:
        raise ValueError(
            f"buffer size ({wanted} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({dtype.itemsize})"
        )
    shape = (wanted // dtype.itemsize,)
    return _marked(_C._from_bytes(view[:wanted], shape, dtype), requires_grad)


@function
def meshgrid(*tensors, indexing="ij"):
    """Coordinate grids of 1-D tensors."""
    if len(tensors) == 1 and not isinstance(tensors[0], _C.Tensor):
        tensors = tensors[0]
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid: indexing must be 'ij' or 'xy', not {indexing!r}")
    order = list(tensors)
    swap = indexing == "xy" and len(order) > 1
    if swap:
        order[0], order[1] = order[1], order[0]
    shape = [t.numel() for t in order]
    grids = []
    for i, t in enumerate(order):
        sizes = [1] * len(shape)
        sizes[i] = -1
        grids.append(_ops.expand(_ops.view(t, sizes), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@method
@_new("new_zeros", "zeros")
def new_zeros(self, *size, dtype=None, **options):
    """zeros() of this tensor's type, on its device."""
    _with_device(self, options)
    return zeros(*size, dtype=dtype or self.dtype, **options)


@method
@_new("new_ones", "ones")
def new_ones(self, *size, dtype=None, **options):
    """ones() of this tensor's type, on its device."""
    _with_device(self, options)
    return ones(*size, dtype=dtype or self.dtype, **options)


@method
@_new("new_empty", "empty")
def new_empty(self, *size, dtype=None, **options):
    """empty() of this tensor's type, on its device."""
    _with_device(self, options)
    return _ops.empty(_sizes(size), dtype=dtype or self.dtype, **options)


@function
def empty_strided(size, stride, *, dtype=None, requires_grad=False, **options):
    """Uninitialised, of the given strides, over memory of its own."""
    if min(size, default=0) < 0 or min(stride, default=0) < 0:
        raise OpError(
            "[empty_strided] sizes and strides must not be negative. Got "
            f"size={list(size)}, stride={list(stride)}."
        )
    if len(size) != len(stride):
        raise RuntimeError(
            "mismatch in length of strides and shape. Got size="
            f"{list(size)}, stride={list(stride)}"
        )
    last = [step * (n - 1) for n, step in zip(size, stride)]
    entries = 0 if 0 in tuple(size) else 1 + sum(last)
    memory = _ops.empty((entries,), dtype=dtype, **options)
    return _marked(_ops.as_strided(memory, tuple(size), tuple(stride)), requires_grad)


@function
def empty_permuted(
    size, physical_layout, *, dtype=None, requires_grad=False, **options
):
    """Uninitialised, dense; physical_layout lists the dimensions from the outermost to
    the innermost in memory: (0, 2, 3, 1) is channels last."""
    order = [int(d) for d in physical_layout]
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the "
            f"physical_layout; i.e. len(size) = {len(size)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(order):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(order) - 1}"
                f", but got {d} at index {order.index(d)}). NB: negative dims not "
                "currently supported; file an issue if you want it."
            )
    if len(set(order)) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed. Got {order}.")
    memory = _ops.empty([size[d] for d in order], dtype=dtype, **options)
    turned = _ops.permute(memory, [order.index(d) for d in range(len(order))])
    return _marked(turned, requires_grad)


@method
def new_empty_strided(self, size, stride, *, dtype=None, **options):
    """empty_strided() of this tensor's type, on its device."""
    _with_device(self, options)
    return empty_strided(size, stride, dtype=dtype or self.dtype, **options)


@method
@_new("new_full", "full")
def new_full(self, size, fill_value, *, dtype=None, **options):
    """full() of this tensor's type, on its device."""
    _with_device(self, options)
    return _ops.full(size, fill_value, dtype=dtype or self.dtype, **options)


@method
def new_tensor(self, data, *, dtype=None, **options):
    """tensor() of this tensor's type, on its device."""
    _with_device(self, options)
    return _C.tensor(data, dtype=dtype or self.dtype, **options)
