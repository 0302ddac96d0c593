# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Fisher-Snedecor distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.gamma_sampling import log_gamma
from holdfast.distributions.parameters import broadcast_scalars

_ops = _C.ops


class FisherSnedecor(Distribution):
    """The ratio of two chi-square numbers of df1 > 0 and df2 > 0 degrees of freedom,
    each divided by its own; they broadcast to the batch."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batch_parameters = ("df1", "df2")

    def __init__(self, df1, df2, validate_args=None):
        (self.df1, self.df2), batch_shape = broadcast_scalars(df1, df2)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        """NaN where df2 <= 2."""
        safe = _ops.where(self.df2 > 2, self.df2, 3.0)
        return _ops.where(self.df2 > 2, safe / (safe - 2), math.nan)

    @property
    def mode(self):
        """NaN where df1 <= 2."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return _ops.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self):
        """NaN where df2 <= 4."""
        a, b = self.df1, _ops.where(self.df2 > 4, self.df2, 5.0)
        variance = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return _ops.where(self.df2 > 4, variance, math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        a, b = ((0.5 * df).expand(shape) for df in (self.df1, self.df2))
        log_ratio = log_gamma(a) - _ops.log(a) - log_gamma(b) + _ops.log(b)
        value = _ops.to(_ops.exp(log_ratio), self.df1.dtype)
        return _ops.clamp(value, holdfast.finfo(value.dtype).tiny, None)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        constant = _ops.lgamma(a + b) - _ops.lgamma(a) - _ops.lgamma(b)
        power = a * _ops.log(ratio) + (a - 1) * _ops.log(value)
        return constant + power - (a + b) * _ops.log1p(ratio * value)
