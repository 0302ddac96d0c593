# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`holdfast run --torch train.py`: a program of the installed PyTorch, unchanged, with
device "holdfast" where it says "cuda", and as the default device.

In the program's process torch.device("cuda") is torch.device("holdfast:0"), `.cuda()`
and `.to("cuda")` move tensors there, and what it asks torch.cuda for, torch.holdfast
answers. Nothing of it is written anywhere.
"""

import functools
import os

import torch
from torch.overrides import TorchFunctionMode

import holdfast_torch
from holdfast_torch import _device

# What programs ask torch.cuda, and this device can tell.
_ASKED = (
    "is_available is_initialized is_bf16_supported device_count current_device "
    "set_device device synchronize manual_seed manual_seed_all get_rng_state "
    "set_rng_state get_device_name empty_cache memory_allocated max_memory_allocated "
    "memory_reserved max_memory_reserved reset_peak_memory_stats mem_get_info Stream "
    "Event current_stream default_stream stream"
).split()
# Functions that take a device as an argument without its name.
_POSITIONAL = {torch.device, torch.Tensor.to, torch.Tensor.new_tensor}
_DRAWS = {
    getattr(torch, name)
    for name in "rand randn randint randperm normal bernoulli multinomial".split()
}


def understand_cuda(default_device="holdfast"):
    """From now on "cuda" means "holdfast" in this thread of the program."""
    for name in _ASKED:
        setattr(torch.cuda, name, getattr(_device, name))
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    for kind in (torch.autocast, torch.amp.GradScaler):
        kind.__init__ = _with_our_device(kind.__init__)
    torch.set_default_device(default_device)
    # A child, such as a worker of a DataLoader, has no session: it works on the CPU.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_default_device("cpu"))
    _CudaIsHoldfast().__enter__()


def _with_our_device(init):
    """The first argument is a device's type, "cuda" by default or often."""

    @functools.wraps(init)
    def with_our_device(self, *args, **kwargs):
        if args:
            args = (_ours(args[0]), *args[1:])
        kwargs = {name: _ours(value) for name, value in kwargs.items()}
        if not args and init.__qualname__.startswith("GradScaler"):
            kwargs.setdefault("device", "holdfast")
        return init(self, *args, **kwargs)

    return with_our_device


def _ours(value):
    """The argument, with "cuda" as "holdfast"."""
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "holdfast" + value[4:]
    if isinstance(value, torch._C.device) and value.type == "cuda":
        return _HOLDFAST
    return value


_HOLDFAST = torch.device("holdfast:0")


class _CudaIsHoldfast(TorchFunctionMode):
    """Sees every call of PyTorch's in this thread, before its arguments are read."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0].to(_HOLDFAST)
        if func is torch.Tensor.numpy and args[0].device.type == "holdfast":
            return args[0].cpu().numpy(**kwargs)
        if func in _POSITIONAL:
            args = tuple(_ours(value) for value in args)
        if "device" in kwargs:
            kwargs["device"] = _ours(kwargs["device"])
        elif func in _DRAWS and kwargs.get("generator") is not None:
            # As with a default device of "cuda" a generator of the CPU would not fit.
            kwargs["device"] = kwargs["generator"].device
        return func(*args, **kwargs)


def run(args):
    """Runs the program of `holdfast run`'s arguments; raises what it raises."""
    from holdfast import run as runner

    if args.address:
        holdfast_torch.connect(args.address)
    understand_cuda(args.default_device)
    return runner.run_program(args)
