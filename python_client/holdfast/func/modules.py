# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Modules as functions of their parameters and buffers."""

from holdfast import _C
from holdfast.shapes import stack

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

Tensor = _C.Tensor


def _place(module, name):
    """(registry, key) that holds the parameter or buffer `name`, or None."""
    *path, key = name.split(".")
    for part in path:
        module = module._modules.get(part)
        if module is None:
            return None
    for registry in (module._parameters, module._buffers):
        if key in registry:
            return registry, key
    return None


def _same(module):
    """Lists of the names under which one tensor is known."""
    names = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for key, tensor in registry.items():
                if tensor is not None:
                    name = f"{prefix}.{key}" if prefix else key
                    names.setdefault(id(tensor), []).append(name)
    return names.values()


def _merged(dicts):
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, (tuple, list)) or not all(
        isinstance(d, dict) for d in dicts
    ):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
            f"dicts, but got {type(dicts)}"
        )
    merged = {}
    for d in dicts:
        for name in d:
            if name in merged:
                raise ValueError(
                    f"{name} appears in multiple dictionaries; behavior of "
                    "functional call is ambiguous"
                )
        merged.update(d)
    return merged


def _with_tied(values, module):
    for names in _same(module):
        given = {id(values[n]): values[n] for n in names if n in values}
        if len(given) > 1:
            raise ValueError(
                "functional_call got multiple values for keys "
                f"{[n for n in names if n in values]}, which are tied. Consider using "
                "tie_weights=False"
            )
        if given:
            (value,) = given.values()
            values.update(dict.fromkeys(names, value))
    return values


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args=None,
    kwargs=None,
    *,
    tie_weights=True,
    strict=False,
) -> "Any":
    """module(*args, **kwargs) with other tensors as parameters and buffers.

    They are given by name, in a dict or several; names not given keep theirs. All
    names of one tied tensor change together, unless not tie_weights. strict: every
    name must be given. The module is as before afterwards, and must not be used by
    another thread meanwhile. As torch.func.functional_call.
    """
    values = _merged(parameter_and_buffer_dicts)
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor. Got {type(value).__name__}.")
    unexpected = [name for name in values if _place(module, name) is None]
    if tie_weights:
        values = _with_tied(values, module)
    if strict:
        known = {name for names in _same(module) for name in names}
        missing = sorted(known - set(values))
        if missing or unexpected:
            raise RuntimeError(
                f"functional_call: missing key(s) {missing}, unexpected key(s) "
                f"{unexpected}"
            )
    if unexpected:
        raise AttributeError(
            f"{type(module).__name__} has no parameter or buffer {unexpected[0]!r}"
        )
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    changed = []
    try:
        for name, value in values.items():
            registry, key = _place(module, name)
            changed.append((registry, key, registry[key]))
            registry[key] = value
        return module(*args, **(kwargs or {}))
    finally:
        for registry, key, before in reversed(changed):
            registry[key] = before


def stack_module_state(models) -> "Any":
    """(parameters, buffers) of modules of one kind, each stacked: dicts by name.

    Parameters are new leaves [len(models), *shape]. For vmap over
    functional_call. As torch.func.stack_module_state.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to be of the same class."
        )
    if any(m.training != models[0].training for m in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval "
            "mode."
        )

    def stacked(dicts):
        return {n: stack([d[n].detach() for d in dicts]) for n in dicts[0]}

    parameters = stacked([dict(m.named_parameters()) for m in models])
    for name, first in models[0].named_parameters():
        parameters[name].requires_grad_(first.requires_grad)
    return parameters, stacked([dict(m.named_buffers()) for m in models])
