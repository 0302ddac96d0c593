# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The LKJ distribution of correlation matrices' Cholesky factors."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.beta import Beta
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars, standard_normal

_ops = _C.ops
Size = _C.Size


class LKJCholesky(Distribution):
    """Cholesky factors [dim, dim] of correlation matrices whose density is
    det^(concentration - 1) (Lewandowski, Kurowicka & Joe 2009, by onions)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(
                "Expected dim to be an integer greater than or equal to 2. "
                f"Found {dim}."
            )
        self.dim = dim
        (self.concentration,), batch_shape = broadcast_scalars(concentration)
        super().__init__(batch_shape, (dim, dim), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        return self._as_expanded(new, Size(batch_shape), self.event_shape)

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            like, dim = self.concentration, self.dim
            row = holdfast.arange(dim, dtype=like.dtype)
            # How far out of the first k unit vectors' span row k leans.
            before = _ops.clamp(row - 1, 0, None)
            shape = like.unsqueeze(-1) + 0.5 * (dim - 2) - 0.5 * before
            length = Beta(before + 0.5, shape, validate_args=False)
            length = length.sample(sample_shape).unsqueeze(-1)
            noise = standard_normal(self._extended_shape(sample_shape), like)
            noise = _ops.tril(noise, -1)
            norm = _ops.sqrt((noise**2).sum(-1, keepdim=True))
            norm = _ops.where(norm > 0, norm, 1.0)
            below = _ops.sqrt(length) * noise / norm
            rest = _ops.clamp(
                1 - (below**2).sum(-1), holdfast.finfo(like.dtype).tiny, None
            )
            return below + holdfast.diag_embed(_ops.sqrt(rest))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        dim, concentration = self.dim, self.concentration
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        power = holdfast.arange(dim - 2, -1, -1, dtype=concentration.dtype)
        power = power + 2 * (concentration - 1).unsqueeze(-1)
        alpha = concentration + 0.5 * (dim - 1)
        constant = (
            0.5 * (dim - 1) * math.log(math.pi)
            + holdfast.mvlgamma(alpha - 0.5, dim - 1)
            - (dim - 1) * _ops.lgamma(alpha)
        )
        return (power * _ops.log(diagonal)).sum(-1) - constant
