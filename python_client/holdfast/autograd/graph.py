# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Contexts that say how what backward needs is kept, by PyTorch's names."""

import contextlib

from holdfast import _C
from holdfast.autograd import saved_tensors
from holdfast.errors import UnsupportedError

__all__ = [
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class saved_tensors_hooks:
    """Within it, what ops save for backward goes through a pair of hooks.

    pack_hook(tensor) is called, in no_grad mode, for each tensor that an op of this
    thread saves: an input (the program's own object), or an output. What it
    returns is kept, whatever it is. When a backward comes to the op,
    unpack_hook(packed) gives a tensor of the same shape; another dtype is
    converted to the first one's. Of nested ones the innermost counts. pack_hook
    must not write to its argument; a saved tensor that is written to later is not
    noticed, since only the hooks know what they keep.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        saved_tensors.push((self.pack_hook, self.unpack_hook))

    def __exit__(self, *error):
        saved_tensors.pop()


def _to_client(tensor):
    # NumPy has no bfloat16; what is unpacked is converted back.
    tensor = tensor.detach()
    array = (tensor.float() if tensor.dtype is _C.bfloat16 else tensor).numpy()
    return array.copy()  # which follows no writes, and holds no tensor


class save_on_cpu(saved_tensors_hooks, contextlib.ContextDecorator):
    """Within it, what ops save for backward is kept in this process's memory.

    Where the daemon computes on the CPU it does nothing: saved tensors are in host
    memory already. `pin_memory` is accepted.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(_to_client, _C.tensor)

    def __enter__(self):
        if _C.default_session().device == "cpu":
            saved_tensors.push(None)
        else:
            super().__enter__()
        return self


def disable_saved_tensors_hooks(error_message):
    """Within it, putting saved_tensors_hooks on raises RuntimeError(error_message).

    So does entering it where some are on.
    """
    return saved_tensors.refused(error_message)


class _Handles:
    """Removes several hooks."""

    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls fn(gradients) once all of the tensors have theirs; returns a handle to
    remove it.

    RuntimeError unless each tensor requires a gradient. A backward that reaches only
    some of them is taken with the next one's. `mode` "any" is not there.
    """
    if mode != "all":
        raise UnsupportedError(
            f"holdfast's register_multi_grad_hook has mode 'all'. Got {mode!r}."
        )
    tensors, arrived = list(tensors), {}

    def watch(place):
        def hook(gradient):
            arrived[place] = gradient
            if len(arrived) == len(tensors):
                found = [arrived.pop(i) for i in range(len(tensors))]
                fn(found)

        return hook

    return _Handles([t.register_hook(watch(i)) for i, t in enumerate(tensors)])
