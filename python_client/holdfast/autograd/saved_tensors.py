# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks on what ops save for backward: who has which on, and what they packed.

While hooks are on, the daemon saves nothing for the ops of this thread. The client
packs what an op's gradient will use, and unpacks it when a backward comes to the
op: one round trip per op there, none when the op is recorded.
"""

import contextlib
import threading

from holdfast import _C
from holdfast.autograd.grad_mode import no_grad

Tensor = _C.Tensor


class _Hooks(threading.local):
    def __init__(self):
        # (pack, unpack), or None for none; the last one counts.
        self.stack = []
        self.refusals = []  # messages of disable_saved_tensors_hooks


_hooks = _Hooks()


def _show():
    """Tells the extension what this thread has on."""
    hooks = current()
    _C.set_saved_tensors_hooks(None if hooks is None else lambda: _PackedOp(*hooks))


def current():
    """(pack, unpack) of this thread, or None."""
    return _hooks.stack[-1] if _hooks.stack else None


def push(hooks):
    """Puts (pack, unpack) on for this thread, or None for no hooks."""
    if hooks is not None and _hooks.refusals:
        raise RuntimeError(_hooks.refusals[-1])
    _hooks.stack.append(hooks)
    _show()


def pop():
    """Takes off what the last push put on."""
    _hooks.stack.pop()
    _show()


@contextlib.contextmanager
def off():
    """No hooks inside."""
    if current() is None:
        yield
        return
    push(None)
    try:
        yield
    finally:
        pop()


@contextlib.contextmanager
def refused(message):
    """Putting hooks on is an error inside, with this message."""
    if current() is not None:
        raise RuntimeError(message)
    _hooks.refusals.append(message)
    try:
        yield
    finally:
        _hooks.refusals.pop()


class _Nothing:
    """In the place of a tensor that was not saved; hooks may pack a None."""


def _pack(hook, tensor):
    version = tensor._version
    packed = hook(tensor)
    if tensor._version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors "
            "provided as input to pack hook can not be modified by in-place "
            "operations as this can lead to unexpected side-effects. Got a tensor "
            f"of shape {list(tensor.shape)}; write to a clone of it."
        )
    return packed


def _unpack(hook, packed):
    tensor = hook(packed)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "Output of saved tensor unpack_hook expected to be a Tensor but got "
            f"result of type {type(tensor).__name__}"
        )
    return tensor


class PackedTensor:
    """One tensor that a Function saves, packed by the hooks that are on."""

    __slots__ = ("_packed", "_hook")

    def __init__(self, tensor, hooks):
        pack, self._hook = hooks
        with no_grad():
            self._packed = _pack(pack, tensor)

    def unpack(self):
        return _unpack(self._hook, self._packed)


class _PackedOp:
    """What one op saved. The extension makes one per op, and calls its methods."""

    __slots__ = ("_hooks", "_packed")

    def __init__(self, pack, unpack):
        self._hooks = pack, unpack
        self._packed = ()

    def pack(self, inputs, outputs):
        self._packed = [
            *map(self._pack_one, inputs),
            *map(self._pack_output, outputs),
        ]

    def _pack_one(self, tensor):
        return _Nothing if tensor is None else _pack(self._hooks[0], tensor)

    def _pack_output(self, tensor):
        packed = self._pack_one(tensor)
        # The output itself would own the node that owns this.
        return tensor.detach() if packed is tensor and tensor is not None else packed

    def unpack(self, gradients):
        unpack = self._hooks[1]
        return tuple(
            None if packed is _Nothing else _unpack(unpack, packed)
            for packed in self._packed
        )
