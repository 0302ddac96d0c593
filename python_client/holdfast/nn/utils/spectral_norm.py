# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Spectral normalisation (Miyato et al. 2018): w / (its largest singular value),
which power iteration estimates."""

import holdfast

from .. import functional as F
from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..parameter import Parameter

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def as_matrix(weight, dim):
    """weight with dim as rows and everything else as columns."""
    if dim != 0:
        rest = [d for d in range(weight.dim()) if d != dim]
        weight = weight.permute(dim, *rest)
    return weight.flatten(1) if weight.dim() > 1 else weight.reshape(-1, 1)


def default_dim(module):
    """The dimension of the outputs."""
    kinds = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
    return 1 if isinstance(module, kinds) else 0


def iterate(matrix, u, v, count, eps):
    """`count` steps of power iteration, into u and v; records nothing."""
    with holdfast.no_grad():
        for _ in range(count):
            v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=eps))
            u.copy_(F.normalize(matrix @ v, dim=0, eps=eps))


class SpectralNorm:
    """The forward pre-hook that computes the weight from `<name>_orig`."""

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module, do_power_iteration):
        """The weight; gradients reach `<name>_orig`, not the singular vectors."""
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            iterate(matrix.detach(), u, v, self.n_power_iterations, self.eps)
            # The next step writes into the buffers; this one's backward reads them.
            u, v = u.clone(), v.clone()
        return weight / holdfast.dot(u, matrix @ v)

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Replaces the parameter and registers the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    "Cannot register two spectral_norm hooks on the same parameter "
                    f"{name}"
                )
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(
                f"`SpectralNorm` cannot be applied as parameter `{name}` is None"
            )
        rows, columns = as_matrix(weight.detach(), dim).shape
        u, v = (
            F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps)
            for n in (rows, columns)
        )
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module):
        """Puts the normalised weight back as a parameter."""
        with holdfast.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a parameter by its spectral norm at every call of the module, with
    `n_power_iterations` steps each in training; returns the module."""
    dim = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undoes spectral_norm(); ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
