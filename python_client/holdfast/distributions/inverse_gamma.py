# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The inverse gamma distribution."""

import math

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.gamma import Gamma
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import PowerTransform

_ops = _C.ops


class InverseGamma(TransformedDistribution):
    """1 / X for X gamma of shape concentration > 0 and rate > 0, which broadcast to
    the batch."""

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, new)

    @property
    def concentration(self):
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The scale of what is drawn."""
        return self.base_dist.rate

    @property
    def mean(self):
        """Infinite where concentration <= 1."""
        a = self.concentration
        return _ops.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        """Infinite where concentration <= 2."""
        a = self.concentration
        finite = self.rate**2 / ((a - 1) ** 2 * (a - 2))
        return _ops.where(a > 2, finite, math.inf)

    def entropy(self):
        a = self.concentration
        slope = (1 + a) * _ops.digamma(a)
        return a + _ops.log(self.rate) + _ops.lgamma(a) - slope
