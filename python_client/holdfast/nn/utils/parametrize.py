# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Parameters that are functions of other parameters.

`register_parametrization(module, "weight", f)` makes `module.weight` the result of
the module f on what is kept as `module.parametrizations.weight.original`.
"""

import contextlib
import copy

import holdfast

from ..container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache = {}
_cached = 0


@contextlib.contextmanager
def cached():
    """Inside, each parametrized tensor is computed once; not thread-safe."""
    global _cached
    _cached += 1
    try:
        yield
    finally:
        _cached -= 1
        if not _cached:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to `original` (or to
    `original0`, `original1`, ... where the first takes several)."""

    def __init__(self, modules, original, unsafe=False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new = original
        with holdfast.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    continue
                # One that cannot be inverted starts from the value as it is.
                with contextlib.suppress(NotImplementedError):
                    new = _inverse(module, new)
        self.is_tensor = isinstance(new, holdfast.Tensor)
        if self.is_tensor:
            if new is not original:
                _check_type(new, original, unsafe)
                with holdfast.no_grad():
                    original.data = new.detach()
            self.ntensors = 1
            _register(self, "original", original)
        else:
            self.ntensors = len(new)
            for i, part in enumerate(new):
                if not isinstance(part, holdfast.Tensor):
                    raise ValueError(
                        "right_inverse must return a Tensor or a Sequence of tensors. "
                        f"Got element {i} of type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, f"original{i}", part)

    def right_inverse(self, value):
        """Sets the originals so that the parametrized tensor becomes `value`."""
        with holdfast.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse."
                    )
                value = _inverse(module, value)
            if self.is_tensor:
                self.original.data = value.detach()
                return
            for i, part in enumerate(value):
                getattr(self, f"original{i}").data = part.detach()

    def forward(self):
        modules = iter(self)
        if self.is_tensor:
            x = next(modules)(self.original)
        else:
            parts = (getattr(self, f"original{i}") for i in range(self.ntensors))
            x = next(modules)(*parts)
        for module in modules:
            x = module(x)
        return x


def _inverse(module, value):
    return module.right_inverse(value)


def _check_type(new, original, unsafe):
    if not unsafe and new.dtype != original.dtype:
        raise ValueError(
            "When `right_inverse` outputs one tensor, it may not change the dtype. "
            f"Got {new.dtype}, expected {original.dtype}."
        )


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _own_class(module):
    """Gives the module a class of its own, a subclass that properties can be put
    on."""
    cls = type(module)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    def __getstate__(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through "
            "state_dict()."
        )

    members = {"__deepcopy__": __deepcopy__, "__getstate__": __getstate__}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module, name):
    def get(self):
        parametrization = self.parametrizations[name]
        if not _cached:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Makes `module.<tensor_name>`, a parameter or buffer, the result of the module
    `parametrization`; a further one is applied after those that are there.

    With a method `right_inverse` it also takes values. Unless `unsafe`, shape and
    dtype must stay (ValueError). Returns the module.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            _check_result(parametrization(now), now)
        existing = module.parametrizations[tensor_name]
        existing.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized "
            f"element with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    before = original.detach().clone()
    parametrizations = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with holdfast.no_grad():
            _check_result(parametrizations(), before)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations[tensor_name] = parametrizations
    return module


def _check_result(new, old):
    for what in ("dtype", "shape"):
        if getattr(new, what) != getattr(old, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the "
                f"tensor, unless `unsafe` flag is enabled.\n{what}: "
                f"{getattr(old, what)} became {getattr(new, what)}"
            )


def is_parametrized(module, tensor_name=None):
    """Whether anything (or the tensor of that name) of the module is."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """The tensor is a plain one again: with its present value, or what it was made
    of where `leave_parametrized` is False. Returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"Module {module} does not have a parametrization on {tensor_name}"
        )
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with holdfast.no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that "
            "is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The module's class as it was written."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
