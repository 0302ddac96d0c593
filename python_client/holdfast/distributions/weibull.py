# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Weibull distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.parameters import EULER, broadcast_all
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import AffineTransform, PowerTransform

_ops = _C.ops


class Weibull(TransformedDistribution):
    """scale * E ** (1 / concentration) for E exponential of rate 1; scale > 0 and
    concentration > 0 broadcast to the batch. ValueError outside of that."""

    arg_constraints = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(holdfast.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(1 / self.concentration),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, n):
        """The mean of x ** n."""
        return self.scale**n * _ops.exp(_ops.lgamma(1 + n / self.concentration))

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        """NaN where concentration < 1 and the density has no largest value."""
        inverse = 1 / self.concentration
        return self.scale * _ops.pow(1 - inverse, inverse)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self):
        inverse = 1 / self.concentration
        return EULER * (1 - inverse) + _ops.log(self.scale * inverse) + 1
