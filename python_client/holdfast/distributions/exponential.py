# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The exponential distribution."""

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import broadcast_scalars, empty

_ops = _C.ops


class Exponential(ExponentialFamily):
    """Exponential numbers of rate > 0 (mean 1 / rate)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ("rate",)
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        (self.rate,), batch_shape = broadcast_scalars(rate)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def mode(self):
        return self.rate.new_zeros(self._batch_shape)

    @property
    def stddev(self):
        return 1 / self.rate

    @property
    def variance(self):
        return self.rate**-2

    def rsample(self, sample_shape=()):
        drawn = empty(self._extended_shape(sample_shape), self.rate).exponential_()
        return drawn / self.rate

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return _ops.log(self.rate) - self.rate * value

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 1 - _ops.exp(-self.rate * value)

    def icdf(self, value):
        return -_ops.log1p(-value) / self.rate

    def entropy(self):
        return 1 - _ops.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -_ops.log(-x)
