# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The log-normal distribution."""

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.normal import Normal
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import ExpTransform

_ops = _C.ops


class LogNormal(TransformedDistribution):
    """exp(X) for X normal of mean loc and standard deviation scale > 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogNormal, _instance)
        return super().expand(batch_shape, new)

    @property
    def loc(self):
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        return _ops.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self):
        return _ops.exp(self.loc - self.scale**2)

    @property
    def variance(self):
        return _ops.expm1(self.scale**2) * _ops.exp(2 * self.loc + self.scale**2)

    def entropy(self):
        return self.base_dist.entropy() + self.loc
