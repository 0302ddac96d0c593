# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The distribution of a Cauchy number's absolute value."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.cauchy import Cauchy
from holdfast.distributions.parameters import broadcast_scalars
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import AbsTransform

_ops = _C.ops


class HalfCauchy(TransformedDistribution):
    """|X| for X Cauchy around 0 of half width scale > 0, [...]. The mean and the
    variance are infinite. ValueError for a scale that is not positive."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        (scale,), _ = broadcast_scalars(scale)
        # This distribution's own check names the parameter.
        base = Cauchy(holdfast.zeros_like(scale), scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, new)

    @property
    def scale(self):
        """The median, batch_shape."""
        return self.base_dist.scale

    @property
    def mean(self):
        return self.scale.new_full(self._batch_shape, math.inf)

    @property
    def mode(self):
        return holdfast.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

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
