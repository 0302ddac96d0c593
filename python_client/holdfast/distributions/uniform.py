# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The uniform distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars, uniform

_ops = _C.ops


class Uniform(Distribution):
    """Uniform numbers in [low, high), low < high."""

    arg_constraints = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True
    _batch_parameters = ("low", "high")

    def __init__(self, low, high, validate_args=None):
        (self.low, self.high), batch_shape = broadcast_scalars(low, high)
        super().__init__(batch_shape, validate_args=validate_args)
        if self._validate_args and not _ops.all(self.low < self.high).item():
            raise ValueError(
                "Uniform is not defined when low >= high. "
                f"Got low={self.low}, high={self.high}."
            )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return self.low * holdfast.nan

    @property
    def stddev(self):
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self):
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape=()):
        drawn = uniform(self._extended_shape(sample_shape), self.low)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        # log(0) outside, in the parameters' type.
        inside = _ops.to(inside, self.low.dtype)
        return _ops.log(inside) - _ops.log(self.high - self.low)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return _ops.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return _ops.log(self.high - self.low)
