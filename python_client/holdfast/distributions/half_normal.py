# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The distribution of a normal number's absolute value."""

import math

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.normal import Normal
from holdfast.distributions.parameters import broadcast_scalars

_ops = _C.ops


class HalfNormal(Distribution):
    """|X| for X normal of mean 0 and standard deviation scale > 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ("scale",)

    def __init__(self, scale, validate_args=None):
        (self.scale,), batch_shape = broadcast_scalars(scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def base_dist(self):
        """The normal distribution whose absolute value this is."""
        return Normal(_ops.mul(self.scale, 0.0).detach(), self.scale, False)

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self):
        return self.scale.new_zeros(self._batch_shape)

    @property
    def variance(self):
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape=()):
        return _ops.abs(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return _ops.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
