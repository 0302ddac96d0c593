# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Module: a function with parameters, and the base class of every layer."""

from collections import OrderedDict
from typing import Any

import holdfast
from holdfast.missing import error_of

from .global_hooks import CALLS, registered
from .module_hooks import HOOKS, HooksMixin
from .module_state import STATE_HOOKS, StateMixin
from .module_tree import TreeMixin
from .parameter import Buffer, Parameter

# Methods that move a module to what no daemon computes on.
_NO_DEVICES = ("ipu", "mtia", "xpu")
_REGISTRIES = ("_parameters", "_buffers", "_modules")


def _fresh_state():
    """The attributes of a module without parameters, children and hooks."""
    return {
        "training": True,
        "_non_persistent_buffers_set": set(),
        **{name: OrderedDict() for name in _REGISTRIES + HOOKS + STATE_HOOKS},
    }


class Module(TreeMixin, StateMixin, HooksMixin):
    """Base class of neural network modules, as PyTorch's nn.Module.

    A subclass calls `super().__init__()`, assigns parameters, buffers and
    submodules as attributes, and defines `forward`.

    Example:
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(784, 10)

            def forward(self, x):
                return self.out(x.flatten(1))
    """

    training: bool
    # What programs find in PyTorch's, and nobody asks here.
    call_super_init = dump_patches = False

    def __init__(self):
        # Not through __setattr__: it needs these to exist.
        self.__dict__.update(_fresh_state())

    def forward(self, *args, **kwargs):
        """What calling the module computes; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or CALLS
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def compile(self, *args, **kwargs):
        """Nothing, as torch.compile: ops run one by one, as written."""

    def __setstate__(self, state):
        # Of a pickle that another version wrote, or PyTorch.
        self.__dict__.update({**_fresh_state(), **state})

    # ---- attributes

    def __getattr__(self, name):
        # Reached only when normal lookup fails.
        state = self.__dict__
        for registry in _REGISTRIES:
            if registry in state and name in state[registry]:
                return state[registry][name]
        if name in _NO_DEVICES:
            raise error_of("torch.nn.Module", name)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self._need_init("parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._need_init("module")
            self._forget(name, "_modules")
            # Also under the name of a class attribute or a method, which reading finds
            # first: register_module() would refuse it.
            self._modules[name] = registered("module", self, name, value)
        elif isinstance(value, Buffer):
            self._need_init("buffers")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                raise _cannot_assign(value, "parameter", name, "nn.Parameter")
            self.register_parameter(name, None)
        elif name in self.__dict__.get("_modules", ()):
            if value is not None:
                raise _cannot_assign(value, "child module", name, "nn.Module")
            self._modules[name] = None
        elif name in self.__dict__.get("_buffers", ()):
            if value is not None and not isinstance(value, holdfast.Tensor):
                raise _cannot_assign(value, "buffer", name, "Tensor")
            self._buffers[name] = value
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name):
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = set(super().__dir__())
        for registry in _REGISTRIES:
            names.update(self.__dict__.get(registry, ()))
        return sorted(name for name in names if name.isidentifier())

    def _need_init(self, what):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name, keep):
        """Makes room under `name` for a value that goes into registry `keep`."""
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        for registry in _REGISTRIES:
            # In its own registry a replaced value keeps its place in the order.
            if registry != keep:
                self.__dict__[registry].pop(name, None)

    # ---- registration

    def register_parameter(self, name, param):
        """Adds a Parameter (or None: declared, but absent) under `name`."""
        self._check_name(name, "parameter", "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_type_name(param)}' object to parameter "
                    f"'{name}' (nn.Parameter or None required)"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                    f"parameters must be created explicitly. To express '{name}' as "
                    "a function of another Tensor, compute the value in the "
                    "forward() method."
                )
        self._parameters[name] = registered("parameter", self, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is state but no parameter, such as a running mean."""
        self._check_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, holdfast.Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name, module):
        """Adds a child module (or None) under `name`."""
        self._check_name(name, "module", "_modules")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._modules[name] = registered("module", self, name, module)

    add_module = register_module

    def _check_name(self, name, what, registry):
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(
                f"{what} name should be a string. Got {type(name).__name__}"
            )
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # ---- text

    def extra_repr(self):
        """What stands between the parentheses in this module's repr."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)" if body else self._get_name() + "()"


def _type_name(value):
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix(
        "builtins."
    )


def _cannot_assign(value, what, name, expected):
    return TypeError(
        f"cannot assign '{_type_name(value)}' as {what} '{name}' "
        f"({expected} or None expected)"
    )
