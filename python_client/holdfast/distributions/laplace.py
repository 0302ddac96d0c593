# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Laplace distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars, empty

_ops = _C.ops


class Laplace(Distribution):
    """Numbers around loc with density exp(-|x - loc| / scale) / (2 scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")

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
    def variance(self):
        return 2 * self.scale**2

    @property
    def stddev(self):
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape=()):
        eps = holdfast.finfo(self.loc.dtype).eps
        drawn = empty(self._extended_shape(sample_shape), self.loc)
        drawn = drawn.uniform_(eps - 1, 1)
        # Below 1 after rounding, too, so that the logarithm is finite.
        size = -_ops.log1p(-_ops.clamp(_ops.abs(drawn), None, 1 - eps / 2))
        return self.loc + self.scale * size * _ops.sign(drawn)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -_ops.log(2 * self.scale) - _ops.abs(value - self.loc) / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc) / self.scale
        return 0.5 - 0.5 * _ops.sign(distance) * _ops.expm1(-_ops.abs(distance))

    def icdf(self, value):
        term = value - 0.5
        side = _ops.sign(term) * _ops.log1p(-2 * _ops.abs(term))
        return self.loc - self.scale * side

    def entropy(self):
        return 1 + _ops.log(2 * self.scale)
