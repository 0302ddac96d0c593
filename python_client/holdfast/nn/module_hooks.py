# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a Module calls around forward and backward, beside its forward."""

from ..utils.hooks import RemovableHandle, register
from . import global_hooks
from .backward_hooks import BackwardHooks

HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class HooksMixin:
    """Calls the hooks of a module and those of all modules (global_hooks), which come
    first; registers the module's own."""

    def _call_with_hooks(self, args, kwargs):
        args, kwargs = self._run_pre_hooks(args, kwargs)
        hooks = {**global_hooks.FORWARD, **self._forward_hooks}
        called = set()
        backward = BackwardHooks(self)
        args = backward.watch_inputs(args)
        try:
            result = self.forward(*args, **kwargs)
            for key, hook in hooks.items():
                called.add(key)
                result = self._run_forward_hook(key, hook, args, kwargs, result)
            return backward.watch_outputs(result)
        except Exception:
            always = {**global_hooks.ALWAYS_CALLED, **self._forward_hooks_always_called}
            for key in always:
                if key not in called and key in hooks:
                    self._run_forward_hook(key, hooks[key], args, kwargs, None)
            raise

    def _run_pre_hooks(self, args, kwargs):
        hooks = {**global_hooks.FORWARD_PRE, **self._forward_pre_hooks}
        for key, hook in hooks.items():
            if key in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of "
                            f"(new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _run_forward_hook(self, key, hook, args, kwargs, result):
        if key in self._forward_hooks_with_kwargs or key in global_hooks.WITH_KWARGS:
            changed = hook(self, args, kwargs, result)
        else:
            changed = hook(self, args, result)
        return result if changed is None else changed

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls `hook(module, args)` before forward; it may return new args.

        With `with_kwargs`, `hook(module, args, kwargs)` returns None or
        (args, kwargs). Returns a handle whose `remove()` unregisters it.
        """
        handle = RemovableHandle(
            self._forward_pre_hooks, more=[self._forward_pre_hooks_with_kwargs]
        )
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self, hook, *, prepend=False, with_kwargs=False, always_call=False
    ):
        """Calls `hook(module, args, output)` after forward; it may replace output.

        With `with_kwargs`, `hook(module, args, kwargs, output)`; with
        `always_call`, also when forward raised. Returns a removable handle.
        """
        handle = RemovableHandle(
            self._forward_hooks,
            more=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_input, grad_output)` in backward.

        Both are tuples: a gradient or None per positional argument of forward and
        per result (a tensor or a tuple). It may return other gradients of the
        arguments, as many. Without an argument that requires a gradient it is
        called with None for each. Returns a removable handle.
        """
        return register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_output)` in backward before the module's own.

        It may return other gradients of the results. Returns a removable handle.
        """
        return register(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """register_full_backward_hook: PyTorch's old kind saw only the gradients of
        the module's last op."""
        return self.register_full_backward_hook(hook)
