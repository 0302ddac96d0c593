# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What PyTorch lets a program choose about the machine: accepted where Holdfast
has nothing to choose, so that programs run.

Threads belong to the daemon, which `holdfastd --help` tells about; results do not
depend on their number, and every algorithm is deterministic.
"""

import os

from holdfast import _C, _numerics
from holdfast._device import device_of_number
from holdfast._registry import function

_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"


@function(names=("get_num_interop_threads",))
def get_num_threads():
    """Processors of this machine; the daemon decides how many it uses."""
    return os.cpu_count() or 1


@function(names=("set_num_interop_threads",))
def set_num_threads(n):
    """Checks that n is a positive int: the daemon's threads are its own."""
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer. Got {n}.")


@function
def use_deterministic_algorithms(mode, *, warn_only=False):
    """Lets a GPU use only algorithms whose results repeat bit by bit, as a CPU's
    always do."""
    _numerics.put("deterministic_algorithms", bool(mode))


@function
def are_deterministic_algorithms_enabled():
    """What use_deterministic_algorithms() was told."""
    return _numerics.get("deterministic_algorithms")


@function
def set_float32_matmul_precision(precision):
    """With "high" or "medium" a GPU may round float32 factors of matrix products to
    TF32; "highest", at first, keeps them. RuntimeError for another word."""
    global _precision
    if precision not in _PRECISIONS:
        raise RuntimeError(
            f"precision must be one of {_PRECISIONS}. Got {precision!r}."
        )
    _precision = precision
    _numerics.put("matmul_tf32", precision != "highest")


@function
def get_float32_matmul_precision():
    """What set_float32_matmul_precision() was told; "high" or "highest" where
    backends.cuda.matmul.allow_tf32 has changed it since."""
    if _numerics.get("matmul_tf32") == (_precision == "highest"):
        return "high" if _numerics.get("matmul_tf32") else "highest"
    return _precision


@function
def set_warn_always(b):
    """Nothing: Python's filters decide which warnings are shown again."""


@function
def set_default_device(device):
    """Where tensors are made from now on that are made without device=; None for the
    CPU. RuntimeError if the daemon does not have the device."""
    _C.set_default_device(device)


@function
def get_default_device():
    """The device where tensors are made that are made without device=."""
    return device_of_number(_C.default_device())


@function
def set_flush_denormal(mode):
    """False: denormal numbers are kept."""
    return False


@function
def typename(o):
    """The name of an object's type; of a tensor, of its elements' type."""
    if isinstance(o, _C.Tensor):
        return o.type()
    kind = type(o)
    module = getattr(kind, "__module__", "")
    prefix = "" if module in ("", "builtins", "__builtin__") else f"{module}."
    return prefix + kind.__qualname__


@function(names=("_assert",))
def _checked(condition, message):
    """assert, as a function."""
    assert condition, message


@function
def get_device_module(device=None):
    """The module of a device's type, torch.cuda or torch.cpu; of the accelerator, or
    else the CPU, for None. RuntimeError for a type that there is no module of."""
    import holdfast

    if device is None:
        device = "cuda" if holdfast.cuda.is_available() else "cpu"
    kind = holdfast.device(device).type
    if kind not in ("cpu", "cuda", "mps", "xpu"):
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as "
            f"'torch.{kind}'."
        )
    return getattr(holdfast, kind)


@function
def get_device(input):
    """The GPU's number of a tensor, -1 on the CPU."""
    return input.get_device()


@function
def compile(model=None, **kwargs):
    """model itself, a module or a function: ops run one by one, as written."""
    return model if model is not None else lambda f: f


def _get_tracing_state():
    """None: nothing is traced."""
    return None


def _log_api_usage_once(event):
    """Nothing: what programs use is not counted."""


# torchvision asks for both.
_C._get_tracing_state = _get_tracing_state
_C._log_api_usage_once = _log_api_usage_once
