# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The gamma distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.gamma_series import incomplete_gamma
from holdfast.distributions.parameters import broadcast_scalars

_ops = _C.ops


class Gamma(ExponentialFamily):
    """Gamma numbers of shape concentration > 0 and rate > 0."""

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ("concentration", "rate")
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        parameters, batch_shape = broadcast_scalars(concentration, rate)
        self.concentration, self.rate = parameters
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return _ops.clamp((self.concentration - 1) / self.rate, 0, None)

    @property
    def variance(self):
        return self.concentration / self.rate**2

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = holdfast._standard_gamma(self.concentration.expand(shape)) / self.rate
        # 0 has no logarithm.
        return _ops.clamp(value, holdfast.finfo(value.dtype).tiny, None)

    def log_prob(self, value):
        value = holdfast.as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        return (
            self.concentration * _ops.log(self.rate)
            + (self.concentration - 1) * _ops.log(value)
            - self.rate * value
            - _ops.lgamma(self.concentration)
        )

    def cdf(self, value):
        value = holdfast.as_tensor(value, dtype=self.rate.dtype)
        if self._validate_args:
            self._validate_sample(value)
        a, x = holdfast.broadcast_tensors(self.concentration, self.rate * value)
        return _ops.to(incomplete_gamma(a, x), x.dtype)

    def entropy(self):
        return (
            self.concentration
            - _ops.log(self.rate)
            + _ops.lgamma(self.concentration)
            + (1 - self.concentration) * _ops.digamma(self.concentration)
        )

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return _ops.lgamma(x + 1) - (x + 1) * _ops.log(-y)
