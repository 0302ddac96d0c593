# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The logistic normal distribution."""

from holdfast.distributions import constraints
from holdfast.distributions.normal import Normal
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Probability vectors [K]: StickBreakingTransform of normal vectors of loc and
    scale > 0, [..., K - 1]."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, new)

    @property
    def loc(self):
        """Means of the normal numbers, [..., K - 1]."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """Standard deviations of the normal numbers, [..., K - 1]."""
        return self.base_dist.base_dist.scale
