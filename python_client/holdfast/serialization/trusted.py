# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a program allows load to find by name, beyond the safe set."""

_allowed = {}


def _names(globals_):
    for item in globals_:
        if isinstance(item, tuple):
            value, name = item
            module, _, qualname = name.rpartition(".")
        else:
            value = item
            module = getattr(value, "__module__", None)
            qualname = getattr(value, "__qualname__", None)
            if module is None or qualname is None:
                raise TypeError(
                    "add_safe_globals() takes classes, functions and (object, full "
                    f"name) pairs. Got {value!r}."
                )
        yield (module, qualname), value


def add_safe_globals(safe_globals):
    """load may use these classes and functions: a list of them, or of (object, name).

    What they do when called is then up to whoever wrote the file.
    """
    _allowed.update(_names(safe_globals))


def get_safe_globals():
    """What add_safe_globals added, a list."""
    return list(_allowed.values())


def clear_safe_globals():
    """Forgets what add_safe_globals added."""
    _allowed.clear()


class safe_globals:
    """`with safe_globals([...]):` add_safe_globals for the block."""

    def __init__(self, safe_globals):
        self._globals = list(safe_globals)

    def __enter__(self):
        self._before = dict(_allowed)
        add_safe_globals(self._globals)

    def __exit__(self, *error):
        _allowed.clear()
        _allowed.update(self._before)


def find(module, name):
    """What the program allowed under that name, or None."""
    return _allowed.get((module, name))


def is_allowed(value):
    return any(value is known for known in _allowed.values())
