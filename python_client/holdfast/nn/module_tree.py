# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a Module does with its whole tree: walking, converting, switching mode."""

import holdfast


class TreeMixin:
    """Walks over submodules, parameters and buffers; applies functions to them."""

    # ---- walking

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yields (dotted name, module), this module ('') first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self):
        """Yields every module of the tree once, this one first."""
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        """Yields (name, module) of the direct children."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """Yields the direct children."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, registry, prefix, recurse, remove_duplicate):
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_name, module in modules:
            for name, value in getattr(module, registry).items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield module_name + ("." if module_name else "") + name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (dotted name, Parameter); shared ones once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yields every Parameter of the tree once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (dotted name, buffer); shared ones once."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yields every buffer of the tree once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        """The module under a dotted name; AttributeError if there is none."""
        module = self
        for name in target.split(".") if target else []:
            found = module._modules.get(name)
            if found is None:
                if hasattr(module, name):
                    raise AttributeError(f"`{name}` is not an nn.Module")
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = found
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts `module` under a dotted name whose parent is there. `strict`: the name
        must be taken already. ValueError for no name or no module, AttributeError for
        what is no module."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, TreeMixin):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if not isinstance(getattr(parent, name, module), TreeMixin):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter under a dotted name."""
        return self._get_member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer under a dotted name."""
        return self._get_member(target, "_buffers", "a buffer")

    def _get_member(self, target, registry, kind):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if module.__dict__[registry].get(name) is None:
            raise AttributeError(f"`{name}` is not {kind}")
        return module.__dict__[registry][name]

    # ---- applying

    def apply(self, fn):
        """Calls `fn(module)` on every child, then on this module; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replaces every parameter, gradient and buffer by fn of it, in place."""
        renewed = {}  # by id: what had to become another object
        for module in self.modules() if recurse else [self]:
            for name, parameter in list(module._parameters.items()):
                if parameter is None:
                    continue
                if id(parameter) not in renewed:
                    renewed[id(parameter)] = _applied(parameter, fn), parameter
                module._parameters[name] = renewed[id(parameter)][0]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fn(buffer)
        return self

    def _to_dtype(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.dtype.is_floating_point else t)

    def float(self):
        """Floating-point parameters and buffers become float32; returns self."""
        return self._to_dtype(holdfast.float32)

    def double(self):
        """Floating-point parameters and buffers become float64; returns self."""
        return self._to_dtype(holdfast.float64)

    def half(self):
        """Floating-point parameters and buffers become float16; returns self."""
        return self._to_dtype(holdfast.float16)

    def bfloat16(self):
        """Floating-point parameters and buffers become bfloat16; returns self."""
        return self._to_dtype(holdfast.bfloat16)

    def type(self, dst_type):
        """Every parameter and buffer becomes `dst_type`; returns self."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self):
        """Moves the module to the CPU; returns self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Moves the module to a GPU; returns self."""
        device = "cuda" if device is None else device
        return self._apply(lambda t: t.to(device))

    def to(self, *args, **kwargs):
        """Converts and moves: `to(dtype)`, `to(device)`, `to(device, dtype)`,
        `to(tensor)`. Returns self.

        Only floating-point parameters and buffers change their type; `dtype`
        must be floating point (TypeError).
        """
        device, dtype = _parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but "
                f"got desired dtype={dtype}"
            )

        def convert(tensor):
            if device is not None:
                tensor = tensor.to(device)
            if dtype is not None and tensor.dtype.is_floating_point:
                tensor = tensor.to(dtype)
            return tensor

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves the module to `device` without its values: uninitialised parameters and
        buffers of the same shapes and types take their places. For modules on "meta"
        (docs/compatibility.md). Returns self."""
        return self._apply(
            lambda t: holdfast.empty_like(t, device=device), recurse=recurse
        )

    # ---- modes

    def train(self, mode=True):
        """Sets training mode (dropout, batch norm) on the tree; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Sets evaluation mode; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Freezes (False) or unfreezes every parameter; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def share_memory(self):
        """Tensor.share_memory_() of every parameter and buffer; returns self."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def zero_grad(self, set_to_none=True):
        """Drops every parameter's gradient, or fills it with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                with holdfast.no_grad():
                    parameter.grad = parameter.grad.detach().zero_()


def _applied(parameter, fn):
    """The parameter with fn of its data and gradient; another one where it comes from
    or goes to "meta", of which nothing is left to go on with."""
    data, grad = parameter.data, parameter.grad
    with holdfast.no_grad():
        new = fn(data)
        new_grad = None if grad is None else fn(grad)
    if new is data and new_grad is grad:
        return parameter
    if new.is_meta != data.is_meta:
        renewed = type(parameter)(new, parameter.requires_grad)
        renewed.grad = new_grad
        return renewed
    # The object stays: optimizers and ties go on working. The gradient goes first,
    # since it must match in type.
    parameter.grad = None
    parameter.data = new
    parameter.grad = new_grad
    return parameter


def _parse_to(
    *args,
    device=None,
    dtype=None,
    non_blocking=False,
    copy=False,
    memory_format=None,
):
    for arg in args:
        if isinstance(arg, holdfast.dtype):
            dtype = arg
        elif isinstance(arg, holdfast.Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, bool):
            continue  # non_blocking: every transfer already is
        elif arg is not None:
            device = arg
    return device, dtype
