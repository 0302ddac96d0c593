# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Student's t distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars, standard_normal

_ops = _C.ops


class StudentT(Distribution):
    """loc + scale * t, t of df > 0 degrees of freedom."""

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("df", "loc", "scale")

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        parameters, batch_shape = broadcast_scalars(df, loc, scale)
        self.df, self.loc, self.scale = parameters
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return _ops.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        safe = _ops.where(self.df > 2, self.df, 3.0)
        finite = self.scale**2 * safe / (safe - 2)
        result = _ops.where(self.df > 2, finite, math.inf)
        return _ops.where(self.df > 1, result, math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        half = (0.5 * self.df).expand(shape)
        normal = standard_normal(shape, self.df)
        t = normal * _ops.rsqrt(holdfast._standard_gamma(half) / half)
        return self.loc + self.scale * t

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        normalizer = (
            _ops.log(self.scale)
            + 0.5 * _ops.log(self.df)
            + 0.5 * math.log(math.pi)
            + _ops.lgamma(0.5 * self.df)
            - _ops.lgamma(0.5 * (self.df + 1))
        )
        return -0.5 * (self.df + 1) * _ops.log1p(distance**2 / self.df) - normalizer

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = _ops.lgamma(half) + math.lgamma(0.5) - _ops.lgamma(more)
        slope = more * (_ops.digamma(more) - _ops.digamma(half))
        return _ops.log(self.scale) + slope + 0.5 * _ops.log(self.df) + log_beta
