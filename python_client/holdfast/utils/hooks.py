# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks in the order they were registered, and what `register_*_hook` returns."""

import itertools
import weakref


class RemovableHandle:
    """Removes the hook it was returned for; also a context manager.

    Example:
        with module.register_forward_hook(print_shapes):
            module(x)
    """

    _ids = itertools.count()

    def __init__(self, hooks, *, more=()):
        """`hooks` and `more` are the dicts that hold the hook under this id."""
        self.id = next(self._ids)
        self._dicts = [weakref.ref(d) for d in (hooks, *more)]

    def remove(self):
        """Removes the hook; a second call does nothing."""
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def register(hooks, hook, prepend=False):
    """Puts a hook into an OrderedDict of them, behind the others unless `prepend`;
    returns its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
