# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Contexts that say how what backward needs is kept, by PyTorch's names."""

import contextlib

from holdfast import _C
from holdfast.autograd import saved_tensors

__all__ = ["disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


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
