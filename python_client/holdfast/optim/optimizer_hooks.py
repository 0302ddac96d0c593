# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What optimizers call before and after a step, and around their state_dict."""

import functools
from collections import OrderedDict

from ..utils.hooks import register

HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_all_pre_hooks = OrderedDict()
_all_post_hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook):
    """Calls `hook(optimizer, args, kwargs)` before any optimizer's step; it may return
    (args, kwargs) to take their place. Returns a removable handle."""
    return register(_all_pre_hooks, hook, False)


def register_optimizer_step_post_hook(hook):
    """Calls `hook(optimizer, args, kwargs)` after any optimizer's step. Returns a
    removable handle."""
    return register(_all_post_hooks, hook, False)


def hooked(step):
    """A class's `step` that calls the hooks about it; a step that calls its base
    class's is one step."""

    @functools.wraps(step)
    def with_hooks(self, *args, **kwargs):
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _all_pre_hooks
            or _all_post_hooks
        ):
            return step(self, *args, **kwargs)
        if self._is_stepping:
            return step(self, *args, **kwargs)
        args, kwargs = self._before_step(args, kwargs)
        self._is_stepping = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self._is_stepping = False
        for hooks in (self._optimizer_step_post_hooks, _all_post_hooks):
            for hook in list(hooks.values()):
                hook(self, (self, *args), kwargs)
        return result

    with_hooks.hooked = True
    return with_hooks


class OptimizerHooks:
    """The registrations of an Optimizer, whose state_dict and load_state_dict call
    what is registered here."""

    _is_stepping = False
    profile_hook_step = staticmethod(hooked)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        # Also of a program's own optimizer.
        if callable(step) and not hasattr(step, "hooked"):
            cls.step = hooked(step)

    def __getattr__(self, name):
        # Of an optimizer that was made without __init__, or unpickled.
        if name in HOOKS:
            return self.__dict__.setdefault(name, OrderedDict())
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def _before_step(self, args, kwargs):
        for hooks in (_all_pre_hooks, self._optimizer_step_pre_hooks):
            for hook in list(hooks.values()):
                # PyTorch's args begin with the optimizer.
                changed = hook(self, (self, *args), kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{type(self).__name__}.step must return None or a tuple of "
                        f"(new_args, new_kwargs), but got {changed}."
                    )
                (_, *args), kwargs = changed
        return tuple(args), kwargs

    def register_step_pre_hook(self, hook):
        """Calls `hook(optimizer, args, kwargs)` before each step; it may return
        (args, kwargs) to take their place. Returns a removable handle."""
        return register(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook):
        """Calls `hook(optimizer, args, kwargs)` after each step. Returns a removable
        handle."""
        return register(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Calls `hook(optimizer)` before state_dict(). Returns a removable handle."""
        return register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Calls `hook(optimizer, state_dict)` with the result of state_dict(); it may
        return another one. Returns a removable handle."""
        return register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Calls `hook(optimizer, state_dict)` before load_state_dict(); it may return
        another one. Returns a removable handle."""
        return register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Calls `hook(optimizer)` after load_state_dict(). Returns a removable
        handle."""
        return register(self._optimizer_load_state_dict_post_hooks, hook, prepend)
