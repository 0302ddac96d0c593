# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where the package's own functions register as `holdfast.<name>` and methods.

The op table's functions need none of this; it is for what Python composes of
them.
"""

import functools
import sys

from holdfast import _C

# name -> function, for holdfast/__init__.py.
FUNCTIONS = {}


def _public(f, names):
    """All names of f; a private one (`_reshape_method`) does not count."""
    own = f.__name__
    return names if own[0] == "_" and own[:2] != "__" else (own, *names)


def name_for_pickle(names, module="holdfast"):
    """Gives functions, the names of a public module, the place by which pickle finds
    them, where it would not find them: there may stand what they were made of."""
    for name, f in names.items():
        # C's functions have a place of their own.
        if type(f) is type(name_for_pickle):
            home = sys.modules.get(f.__module__)
            if getattr(home, f.__qualname__, None) is not f:
                f.__module__, f.__qualname__ = module, name


def accepts_out(f):
    """Decorator: f with PyTorch's keyword `out`, a tensor (a tuple of them where f
    returns one) that the result is written into, as by an op of the table."""

    @functools.wraps(f)
    def with_out(*args, out=None, **kwargs):
        result = f(*args, **kwargs)
        return result if out is None else _C.store_out(out, result)

    return with_out


def function(f=None, *, names=(), out=False):
    """Decorator: `holdfast.<name>`, also under other `names`; `out`: with
    PyTorch's keyword of that name (accepts_out)."""

    def register(f):
        for name in _public(f, names):
            FUNCTIONS[name] = accepts_out(f) if out else f
        return f

    return register(f) if f is not None else register


def method(f=None, *, names=()):
    """Decorator: a method of Tensor."""

    def register(f):
        for name in _public(f, names):
            setattr(_C.Tensor, name, f)
        return f

    return register(f) if f is not None else register


def both(f=None, *, names=(), out=False):
    """Decorator: a function and, with the tensor first, a method; `out` is the
    function's alone, as in PyTorch."""

    def register(f):
        function(f, names=names, out=out)
        return method(f, names=names)

    return register(f) if f is not None else register


def inplace_of(f, *names):
    """Registers `<name>_`, which writes f's result into the tensor. RuntimeError
    where the tensor's type is of a lower category than the result's."""

    def inplace(self, *args, **kwargs):
        from holdfast.dtypes import can_cast

        # Inside the graph f saves the elements as they were.
        recorded = self.requires_grad and not self.is_leaf
        result = f(self.clone() if recorded else self, *args, **kwargs)
        if not can_cast(result.dtype, self.dtype):
            raise RuntimeError(
                f"{f.__name__}_(): result type {result.dtype.name} can't be cast to "
                f"the desired output type {self.dtype.name}"
            )
        return self.copy_(result)

    inplace.__doc__ = f"In-place form of {f.__name__}()."
    for name in names or (f.__name__,):
        setattr(_C.Tensor, name + "_", inplace)


# name -> function: the op table's further forms.
OVERLOADS = {}


def overload(name):
    """Decorator: PyTorch's further forms of the table's op `name`.

    Called with the caller's arguments when they do not fit the row, plus
    `inplace_=True` for the in-place form.
    """

    def register(f):
        _C.set_overload(name, f)
        OVERLOADS[name] = f
        return f

    return register


def reject(function_name, **arguments):
    """NotImplementedError for arguments that PyTorch has and this has not."""
    from holdfast.errors import UnsupportedError

    for argument, value in arguments.items():
        if value is not None:
            raise UnsupportedError(
                f"holdfast has no argument '{argument}' of torch.{function_name}."
            )
