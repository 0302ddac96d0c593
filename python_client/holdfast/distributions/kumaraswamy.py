# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Kumaraswamy distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.parameters import EULER, broadcast_all
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import AffineTransform, PowerTransform
from holdfast.distributions.uniform import Uniform
from holdfast.special_functions import xlog1py

_ops = _C.ops


class Kumaraswamy(TransformedDistribution):
    """Numbers in (0, 1) with P(X <= x) = 1 - (1 - x^a)^b, a = concentration1 > 0 and
    b = concentration0 > 0, which broadcast to the batch (Kumaraswamy 1980). Like a
    beta distribution, with gradients of rsample() for both shapes."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        pair = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = pair
        zero = holdfast.zeros_like(self.concentration0)
        base = Uniform(zero, zero + 1, validate_args=validate_args)
        steps = [
            PowerTransform(1 / self.concentration0),
            AffineTransform(1.0, -1.0),
            PowerTransform(1 / self.concentration1),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    def _moment(self, n):
        """The mean of x ** n: b times the beta function of 1 + n / a and b."""
        b, place = self.concentration0, 1 + n / self.concentration1
        log_beta = _ops.lgamma(place) + _ops.lgamma(b) - _ops.lgamma(place + b)
        return b * _ops.exp(log_beta)

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        """NaN where a shape is below 1, or both are 1: no single largest value."""
        a, b = self.concentration1, self.concentration0
        mode = _ops.pow((a - 1) / (a * b - 1), 1 / a)
        return _ops.where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1) ** 2

    def log_prob(self, value):
        # By itself and not by the transforms, where 1 - x^a would round to 1.
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rest = xlog1py(b - 1, -_ops.pow(value, a))
        return _ops.log(a) + _ops.log(b) + holdfast.xlogy(a - 1, value) + rest

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = _ops.digamma(b + 1) + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - _ops.log(a) - _ops.log(b)
