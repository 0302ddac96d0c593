# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Weight normalisation (Salimans & Kingma 2016): w = g v / |v|."""

import holdfast

from ..parameter import Parameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except(v, dim):
    """2-norms of v over all dimensions but dim (all: -1), which keep size 1."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim]
    return holdfast.sqrt((v * v).sum(others, keepdim=True)) if others else v.abs()


class WeightNorm:
    """The forward pre-hook that computes the weight from `<name>_g` and
    `<name>_v`."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight; gradients reach g and v."""
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    @staticmethod
    def apply(module, name, dim):
        """Replaces the parameter by its two parts and registers the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    "Cannot register two weight_norm hooks on the same parameter "
                    f"{name}"
                )
        fn = WeightNorm(name, dim)
        weight = getattr(module, name)
        if fn.dim != -1:
            fn.dim %= max(weight.dim(), 1)
        del module._parameters[name]
        norms = norm_except(weight.detach(), fn.dim)
        module.register_parameter(name + "_g", Parameter(norms))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module):
        """Puts the weight back as a parameter."""
        weight = self.compute_weight(module).detach()
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Splits a parameter into its norms `<name>_g` over all dimensions but dim
    (None: one norm) and its direction `<name>_v`; returns the module."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Undoes weight_norm(); ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
