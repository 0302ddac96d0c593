# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Cauchy distribution."""

import math

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars, empty

_ops = _C.ops


class Cauchy(Distribution):
    """Cauchy (Lorentz) numbers of median loc and half width scale > 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        (self.loc, self.scale), batch_shape = broadcast_scalars(loc, scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc.new_full(self._batch_shape, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self.loc.new_full(self._batch_shape, math.inf)

    def rsample(self, sample_shape=()):
        drawn = empty(self._extended_shape(sample_shape), self.loc).cauchy_()
        return self.loc + self.scale * drawn

    def _quantile(self, probability):
        return self.loc + self.scale * _ops.tan(math.pi * (probability - 0.5))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return -math.log(math.pi) - _ops.log(self.scale) - _ops.log1p(distance**2)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return _ops.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return self._quantile(value)

    def entropy(self):
        return math.log(4 * math.pi) + _ops.log(self.scale)
