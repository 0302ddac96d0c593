# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.jit's marks, for programs that carry them: everything runs eagerly.

Compiled programs compute what the Python they come from computes, so `script`
returns what it is given. Saving a compiled program is not supported.
"""

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
    return f if callable(f) else lambda g: g


ignore = (
    unused
) = export = script_method = _script_if_tracing = script_if_tracing = _mark

__getattr__ = module_getattr("torch.jit")
