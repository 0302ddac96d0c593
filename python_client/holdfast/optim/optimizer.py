# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Optimizer: parameter groups with options, and state per parameter."""

import warnings
from collections import defaultdict
from collections.abc import Mapping

import holdfast
from holdfast.errors import UnsupportedError

from .optimizer_hooks import OptimizerHooks, hooked
from .optimizer_hooks import (  # noqa: F401
    register_optimizer_step_post_hook as register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook as register_optimizer_step_pre_hook,
)


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _by_device(params, grads):
    """The pairs in lists of one device each: an op's tensors are on one."""
    if len({param._device_number for param in params}) < 2:
        return [(params, grads)]
    lists = {}
    for param, grad in zip(params, grads, strict=True):
        mine = lists.setdefault(param._device_number, ([], []))
        mine[0].append(param)
        mine[1].append(grad)
    return list(lists.values())


class Optimizer(OptimizerHooks):
    """Base class. Subclasses define `_step_group(group, params, grads)`.

    `params` is an iterable of tensors, of (name, tensor) pairs as named_parameters()
    gives, or of dicts {"params": ..., option: value}; `defaults` holds the options.
    Names are kept in each group's "param_names".
    """

    def __init__(self, params, defaults):
        if isinstance(params, holdfast.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {type(params).__name__}"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """Adds {"params": tensors, option: value}; defaults fill the rest."""
        if not isinstance(param_group, dict):
            raise TypeError("param_group must be a dict")
        params = param_group["params"]
        if isinstance(params, holdfast.Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, "
                "but the ordering of tensors in sets will change between runs. "
                "Please use a list instead."
            )
        params, names = _without_names(params)
        if names:
            param_group["param_names"] = names
        for param in params:
            if not isinstance(param, holdfast.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + type(param).__name__
                )
            if not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error",
                stacklevel=3,
            )
        if any(bool(names) != ("param_names" in g) for g in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add "
                f"param group {'with' if names else 'without'} names to the optimizer"
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # ---- steps

    @hooked
    def step(self, closure=None):
        """Updates every parameter that has a gradient.

        `closure`, if given, computes the loss and its gradients first; its
        result is returned.
        """
        loss = None
        if closure is not None:
            with holdfast.enable_grad():
                loss = closure()
        with holdfast.no_grad():
            for group in self.param_groups:
                params = group["params"]
                grads = [param.grad for param in params]
                if any(grad is None for grad in grads):
                    pairs = [pg for pg in zip(params, grads) if pg[1] is not None]
                    if not pairs:
                        continue
                    params, grads = map(list, zip(*pairs))
                for own_params, own_grads in _by_device(params, grads):
                    self._step_group(group, own_params, own_grads)
        return loss

    def _step_group(self, group, params, grads):
        raise NotImplementedError(f"{type(self).__name__} must define _step_group")

    def zero_grad(self, set_to_none=True):
        """Drops every gradient, or fills it with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    with holdfast.no_grad():
                        param.grad = param.grad.detach().zero_()

    # ---- state

    def state_dict(self):
        """{"state": {index: {...}}, "param_groups": [...]}, PyTorch's layout.

        Parameters are replaced by their position in the order of the groups.
        Tensors are the optimizer's own, not copies.
        """
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        index = self._indices()
        groups = [
            {
                **{k: v for k, v in group.items() if k != "params"},
                "params": [index[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {
            index[id(k)] if isinstance(k, holdfast.Tensor) else k: v
            for k, v in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def _indices(self):
        index = {}
        for group in self.param_groups:
            for param in group["params"]:
                index.setdefault(id(param), len(index))
        return index

    def load_state_dict(self, state_dict):
        """Takes over what state_dict() returned for the same parameters.

        Tensors are copied, to the parameter's dtype if it is floating point.
        ValueError if the groups differ in number or in size. A group without
        "param_names" leaves the names as they are.
        """
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups"
            )
        pairs = list(zip(self.param_groups, saved))
        if any(len(g["params"]) != len(s["params"]) for g, s in pairs):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the "
                "size of optimizer's group"
            )
        by_index = {
            key: param
            for group, old in pairs
            for key, param in zip(old["params"], group["params"])
        }
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_index:
                param = by_index[key]
                state[param] = {k: _adapted(v, param) for k, v in value.items()}
            else:
                state[key] = value
        self.state = state
        absent = self._absent_options()
        self.param_groups = [
            {**_names_of(group), **absent, **old, "params": group["params"]}
            for group, old in pairs
        ]
        self._after_load()
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def _absent_options(self):
        """Options that the class has by now and a saved group may lack: as when it is
        made without them, as in PyTorch, whatever this optimizer was made with."""
        options = {}
        for kind in reversed(type(self).__mro__):
            code = getattr(kind.__dict__.get("__init__"), "__code__", None)
            if code is None:
                continue
            f = kind.__init__
            names = code.co_varnames[: code.co_argcount]
            defaults = f.__defaults__ or ()
            options.update(zip(names[len(names) - len(defaults) :], defaults))
            options.update(f.__kwdefaults__ or {})
        absent = dict(self.defaults)  # what has no default is this optimizer's own
        for name, value in options.items():
            if name in absent and value is not required:
                absent[name] = value
        return absent

    def _after_load(self):
        """For subclasses: repairs state that another version wrote."""

    def __getstate__(self):
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name, value in self._absent_options().items():
            for group in self.param_groups:
                group.setdefault(name, value)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [
                f"    {key}: {group[key]}" for key in sorted(group) if key != "params"
            ]
        return "\n".join(lines) + "\n)"


def _without_names(params):
    """(the tensors, their names or none) of tensors or of (name, tensor) pairs."""
    params = list(params)
    names = [param[0] for param in params if isinstance(param, tuple)]
    if names and len(names) < len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are "
            "missing"
        )
    return [param[1] for param in params] if names else params, names


def _names_of(group):
    return {"param_names": group["param_names"]} if "param_names" in group else {}


def _adapted(value, param):
    """A copy of loaded state, in the parameter's dtype where it is floating."""
    if isinstance(value, holdfast.Tensor):
        value = value.detach()
        # 0-d: a step count, which must not be rounded to the parameter's type.
        if value.dim() > 0 and param.dtype.is_floating_point:
            value = value.to(param.dtype)
        return value.clone()
    if isinstance(value, Mapping):
        return {k: _adapted(v, param) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_adapted(v, param) for v in value)
    return value


def check_options(name, lr, weight_decay, **unsupported):
    """Refuses bad values, and options whose effect Holdfast does not have."""
    if lr < 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if weight_decay < 0.0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")
    for option, value in unsupported.items():
        if value:
            raise UnsupportedError(
                f"holdfast has no optim.{name}({option}={value!r}); leave {option} out."
            )
