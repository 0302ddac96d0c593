# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The normal distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import broadcast_scalars, standard_normal

_ops = _C.ops


class Normal(ExponentialFamily):
    """Normal numbers of mean loc and standard deviation scale > 0 (tensors that
    broadcast, or numbers)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")
    _mean_carrier_measure = 0

    def __init__(self, loc, scale, validate_args=None):
        (self.loc, self.scale), batch_shape = broadcast_scalars(loc, scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale**2

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with holdfast.no_grad():
            return holdfast.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=()):
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + noise * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return -0.5 * distance**2 - _ops.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return 0.5 * (1 + _ops.erf(distance * math.sqrt(0.5)))

    def icdf(self, value):
        return self.loc + self.scale * _ops.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return _ops.log(self.scale) + (0.5 + 0.5 * math.log(2 * math.pi))

    @property
    def _natural_params(self):
        variance = self.scale**2
        return self.loc / variance, -0.5 / variance

    def _log_normalizer(self, x, y):
        return -0.25 * x**2 / y + 0.5 * _ops.log(-math.pi / y)
