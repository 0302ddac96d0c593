# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks of every module (torch.nn.modules.module): what is called around each forward
and backward, and with each parameter, buffer and child that a module is given."""

from collections import OrderedDict

from ..utils.hooks import RemovableHandle

FORWARD, FORWARD_PRE = OrderedDict(), OrderedDict()
BACKWARD, BACKWARD_PRE = OrderedDict(), OrderedDict()
# Keys of the hooks in FORWARD and FORWARD_PRE that take keywords, and of those that
# are called whatever forward raised.
WITH_KWARGS, ALWAYS_CALLED = OrderedDict(), OrderedDict()
# Every key of the above: whether there is one is asked at each call of a module.
CALLS = OrderedDict()
# "parameter", "buffer" or "module" -> hooks.
REGISTRATION = {what: OrderedDict() for what in ("parameter", "buffer", "module")}


def _add(hooks, hook, *flags):
    handle = RemovableHandle(hooks, more=[CALLS, *flags])
    hooks[handle.id] = hook
    for flag in (CALLS, *flags):
        flag[handle.id] = True
    return handle


def register_module_forward_pre_hook(hook):
    """Calls `hook(module, args)` before every module's forward; it may return new
    args. Returns a removable handle."""
    return _add(FORWARD_PRE, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls `hook(module, args, output)` after every module's forward; it may replace
    the output. With `with_kwargs`, `hook(module, args, kwargs, output)`; with
    `always_call`, also when forward raised. Returns a removable handle."""
    flags = [WITH_KWARGS] * with_kwargs + [ALWAYS_CALLED] * always_call
    return _add(FORWARD, hook, *flags)


def register_module_full_backward_pre_hook(hook):
    """Calls `hook(module, grad_output)` in the backward of every module. Returns a
    removable handle."""
    return _add(BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook):
    """Calls `hook(module, grad_input, grad_output)` in the backward of every module.
    Returns a removable handle."""
    return _add(BACKWARD, hook)


register_module_backward_hook = register_module_full_backward_hook


def _add_registration(what, hook):
    handle = RemovableHandle(REGISTRATION[what])
    REGISTRATION[what][handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook):
    """Calls `hook(module, name, parameter)` when a module is given a parameter; it may
    return another one. Returns a removable handle."""
    return _add_registration("parameter", hook)


def register_module_buffer_registration_hook(hook):
    """Calls `hook(module, name, tensor)` when a module is given a buffer; it may return
    another one. Returns a removable handle."""
    return _add_registration("buffer", hook)


def register_module_module_registration_hook(hook):
    """Calls `hook(module, name, child)` when a module is given a child; it may return
    another one. Returns a removable handle."""
    return _add_registration("module", hook)


def registered(what, module, name, value):
    """What the hooks make of `value`, which `module` is given."""
    for hook in list(REGISTRATION[what].values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value
