# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Poisson distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import broadcast_scalars

_ops = _C.ops


class Poisson(ExponentialFamily):
    """Counts of mean rate >= 0."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _batch_parameters = ("rate",)

    def __init__(self, rate, validate_args=None):
        (self.rate,), batch_shape = broadcast_scalars(rate)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return _ops.floor(self.rate)

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            shape = self._extended_shape(sample_shape)
            return holdfast.poisson(self.rate.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return holdfast.xlogy(value, self.rate) - self.rate - _ops.lgamma(value + 1)

    @property
    def _natural_params(self):
        return (_ops.log(self.rate),)

    def _log_normalizer(self, x):
        return _ops.exp(x)
