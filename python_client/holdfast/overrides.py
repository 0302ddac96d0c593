# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.overrides: the protocol __torch_function__.

An object of a subclass of Tensor, or of any class with a classmethod
__torch_function__(func, types, args, kwargs), takes over the ops it is an argument
of, by itself or in a list. What Tensor has of that name runs the op and makes its
results objects of the subclass. Functions that are made of several ops are taken
over op by op, as their parts come, where PyTorch hands over the whole.
"""

import functools
import threading

from holdfast import _C
from holdfast.missing import module_getattr

__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
]

Tensor = _C.Tensor
_plain = _C._disabled_torch_function_impl


class DisableTorchFunction:
    """Within it, ops of this thread take objects of subclasses for plain tensors,
    and modes see nothing."""

    def __enter__(self):
        self._before = _C._set_torch_function_off(True)

    def __exit__(self, *error):
        _C._set_torch_function_off(self._before)


class _Modes(threading.local):
    def __init__(self):
        self.stack = []


_modes = _Modes()


class TorchFunctionMode:
    """A context whose __torch_function__(self, func, types, args=(), kwargs=None)
    takes over every op of this thread, the last one entered first.

    Within that method the mode itself is off.
    """

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__name__} must define __torch_function__"
        )

    def __enter__(self):
        _modes.stack.append(self)
        _C._set_torch_function_modes(len(_modes.stack))
        return self

    def __exit__(self, *error):
        _modes.stack.remove(self)
        _C._set_torch_function_modes(len(_modes.stack))


def _of_mode(func, types, args, kwargs):
    mode = _modes.stack.pop()
    _C._set_torch_function_modes(len(_modes.stack))
    try:
        return mode.__torch_function__(func, types, args, kwargs)
    finally:
        _modes.stack.append(mode)
        _C._set_torch_function_modes(len(_modes.stack))


def _in_turn(overriding):
    """One object of each type: subclasses before their bases, else as they came."""
    found = []
    for x in overriding:
        if all(type(x) is not type(other) for other in found):
            before = (i for i, y in enumerate(found) if issubclass(type(x), type(y)))
            found.insert(next(before, len(found)), x)
    return found


def _dispatch(func, overriding, args, kwargs):
    found = _in_turn(overriding)
    types = tuple(type(x) for x in found)
    if _modes.stack:
        result = _of_mode(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for x in found:
        result = x.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{getattr(func, '__name__', func)}' on types "
        f"that implement __torch_function__: {list(types)}"
    )


def _as(cls, result):
    """The tensors of a result as objects of cls."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(_as(cls, item) for item in result))
    if isinstance(result, (tuple, list)):
        return type(result)(_as(cls, item) for item in result)
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    """Runs the op on plain tensors; its results are objects of this class.

    NotImplemented where another class, that this one knows nothing of, takes part.
    """
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunction():
        result = func(*args, **(kwargs or {}))
    return result if cls is Tensor else _as(cls, result)


Tensor.__torch_function__ = classmethod(_torch_function)
_C.DisableTorchFunction = _C.DisableTorchFunctionSubclass = DisableTorchFunction
_C._set_torch_function_dispatch(_dispatch)


def _overrides(x):
    own = getattr(type(x), "__torch_function__", None)
    return own is not None and own is not _plain and type(x) is not Tensor


def has_torch_function(relevant_args):
    """Whether any of them takes calls over, or a mode does."""
    return bool(_modes.stack) or any(_overrides(x) for x in relevant_args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """public_api(*args, **kwargs), by whoever of relevant_args takes it over."""
    overriding = [x for x in relevant_args if _overrides(x)]
    return _dispatch(public_api, overriding, args, kwargs)


def wrap_torch_function(dispatcher):
    """Decorator: a function that arguments may take over; dispatcher(*args,
    **kwargs) gives those that may."""

    def wrap(function):
        @functools.wraps(function)
        def overridable(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(overridable, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return overridable

    return wrap


def is_tensor_like(x):
    """Whether x is a tensor or its class has __torch_function__."""
    return type(x) is Tensor or hasattr(x, "__torch_function__")


def is_tensor_method_or_property(func):
    """Whether a call that was taken over is one of Tensor's methods."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func


__getattr__ = module_getattr("torch.overrides")
