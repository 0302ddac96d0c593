# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Modules that hold parameters: ParameterList, ParameterDict."""

import holdfast

from .container import _position
from .module import Module
from .parameter import Parameter


class ParameterList(Module):
    """A list of parameters that the parent module sees.

    Tensors become parameters; anything else is kept as it is.
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(self, index)))

    def __setitem__(self, index, value):
        self._set(_position(self, index), value)

    def _set(self, position, value):
        if isinstance(value, holdfast.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, str(position), value)

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        """Adds a parameter at the end; returns self."""
        self._set(self._size, value)
        self._size += 1
        return self

    def extend(self, values):
        """Adds every parameter of an iterable; returns self."""
        for value in list(values):
            self.append(value)
        return self

    def __repr__(self):
        lines = []
        for i, value in enumerate(self):
            if isinstance(value, holdfast.Tensor):
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                size = "x".join(str(n) for n in value.shape)
                lines.append(
                    f"    ({i}): {kind} containing: [{value.dtype} of size {size}]"
                )
            else:
                lines.append(f"    ({i}): Object of type: {type(value).__name__}")
        return "\n".join([f"{self._get_name()}(", *lines, ")"])

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, in insertion order, that the parent module sees.

    Tensors become parameters; anything else is kept as it is.
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, str(key))

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a "
                f"string (type is '{type(key).__name__}')."
            )
        if isinstance(value, holdfast.Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"attribute '{key}' already exists")
        self._keys[key] = None
        setattr(self, key, value)

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, key)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def __or__(self, other):
        made = type(self)(self)
        made.update(other)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        """Another ParameterDict of the same parameters."""
        return type(self)(self)

    def clear(self):
        """Removes everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Removes and returns one value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Removes and returns the pair that was added last."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def setdefault(self, key, default=None):
        """The value under key, which is `default` if it was not there."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key, default=None):
        """The value under key, or default."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys, default=None):
        """A ParameterDict with `default` under every key."""
        return type(self)({key: default for key in keys})

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """The (name, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Adds (or replaces) values from a mapping or from pairs."""
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        for key, value in list(pairs):
            self[key] = value

    def __repr__(self):
        lines = []
        for key, value in self.items():
            if isinstance(value, holdfast.Tensor):
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                size = "x".join(str(n) for n in value.shape)
                lines.append(
                    f"    ({key}): {kind} containing: [{value.dtype} of size {size}]"
                )
            else:
                lines.append(f"    ({key}): Object of type: {type(value).__name__}")
        return "\n".join([f"{self._get_name()}(", *lines, ")"])

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")
