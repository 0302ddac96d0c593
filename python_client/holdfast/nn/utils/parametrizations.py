# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Parametrizations that are ready to use: see parametrize."""

import holdfast
from holdfast.missing import module_getattr

from .. import functional as F
from ..module import Module
from .orthogonal import orthogonal
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, default_dim, iterate
from .weight_norm import norm_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        self.dim = dim % max(weight.dim(), 1)
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.dim() > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                vector = weight.new_empty(size).normal_(0, 1)
                self.register_buffer(name, F.normalize(vector, dim=0, eps=eps))
            # Other than spectral_norm() of nn.utils, v follows u.
            iterate(matrix.t(), self._v, self._u, 15, eps)

    def forward(self, weight):
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            count = self.n_power_iterations
            iterate(matrix.detach().t(), self._v, self._u, count, self.eps)
        u, v = self._u.clone(), self._v.clone()
        return weight / holdfast.dot(u, matrix @ v)

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a parameter by its largest singular value; returns the module."""
    weight = getattr(module, name)
    dim = default_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)


class _WeightNorm(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, g, v):
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight):
        return norm_except(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """A parameter as its norms over all dimensions but dim (`original0`) times its
    direction (`original1`); returns the module."""
    weight = getattr(module, name)
    dim = -1 if dim is None else dim % max(weight.dim(), 1)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


__getattr__ = module_getattr("torch.nn.utils.parametrizations")
