# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Gumbel distribution."""

import math

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import EULER, broadcast_scalars, open_uniform

_ops = _C.ops


class Gumbel(Distribution):
    """Gumbel numbers (of the largest of many) of mode loc, scale > 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")

    def __init__(self, loc, scale, validate_args=None):
        (self.loc, self.scale), batch_shape = broadcast_scalars(loc, scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc + self.scale * EULER

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev**2

    def rsample(self, sample_shape=()):
        drawn = open_uniform(self._extended_shape(sample_shape), self.loc)
        return self.icdf(drawn)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (self.loc - value) / self.scale
        return distance - _ops.exp(distance) - _ops.log(self.scale)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return _ops.exp(-_ops.exp((self.loc - value) / self.scale))

    def icdf(self, value):
        return self.loc - self.scale * _ops.log(-_ops.log(value))

    def entropy(self):
        return _ops.log(self.scale) + (1 + EULER)
