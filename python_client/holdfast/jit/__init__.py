# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.jit's marks, for programs that carry them: everything runs eagerly.

Compiled programs compute what the Python they come from computes, so `script`
returns what it is given. Saving a compiled program is not supported.
"""

import builtins
import contextlib
import types
import typing

from holdfast.errors import UnsupportedError
from holdfast.missing import module_getattr
from holdfast.nn import Module as ScriptModule  # noqa: F401


def is_scripting():
    """False."""
    return False


def is_tracing():
    """False."""
    return False


def script(obj, *args, **kwargs):
    """obj itself, a function or a module, to be run as it is written."""
    return obj


def trace(func, example_inputs=None, *args, **kwargs):
    """func itself; example_inputs are not looked at."""
    return func


def _mark(f=None, *args, **kwargs):
    """f itself; also a decorator with arguments."""
    return f if callable(f) else lambda g: g


ignore = unused = export = script_method = interface = _mark
_script_if_tracing = script_if_tracing = _overload_method = _overload = _mark
Final = typing.Final
ScriptFunction = types.FunctionType


def annotate(the_type, the_value):
    """the_value."""
    return the_value


def isinstance(obj, target_type):
    """isinstance(obj, target_type)."""
    return builtins.isinstance(obj, target_type)


def freeze(mod, *args, **kwargs):
    """mod itself."""
    return mod


optimize_for_inference = freeze


def trace_module(mod, inputs, *args, **kwargs):
    """mod itself; inputs are not looked at."""
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Changes nothing."""
    yield


def fork(func, *args, **kwargs):
    """func's result, for wait(): it is computed at once."""
    return func(*args, **kwargs)


def wait(future):
    """What fork() gave."""
    return future


def save(m, f, *args, **kwargs):
    """Refused: programs are not compiled; save state_dict()."""
    raise UnsupportedError(
        "holdfast has no torch.jit.save: programs run as they are written, so there is "
        "no compiled one to save. Save model.state_dict() with torch.save."
    )


def load(f, *args, **kwargs):
    """Refused: programs run as they are written."""
    raise UnsupportedError(
        "holdfast has no torch.jit.load: it runs no TorchScript. Load the state_dict() "
        "into the model's Python class."
    )


__getattr__ = module_getattr("torch.jit")
