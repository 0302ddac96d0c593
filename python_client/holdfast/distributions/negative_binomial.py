# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The negative binomial distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import (
    broadcast_scalars,
    require_one,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits
from holdfast.nn.functional import softplus

_ops = _C.ops


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes, of probability probs < 1 or log odds logits, before
    total_count >= 0 failures; total_count need not be whole."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batch_parameters = ("total_count", "probs", "logits")

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        given = probs if logits is None else logits
        (total, given), batch_shape = broadcast_scalars(total_count, given)
        if not given.is_floating_point():  # of a whole total_count
            given = broadcast_scalars(probs if logits is None else logits)[0][0]
            given = given.expand(batch_shape)
        self.total_count = _ops.to(total, given.dtype)
        setattr(self, "probs" if logits is None else "logits", given)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * _ops.exp(self.logits)

    @property
    def mode(self):
        mode = _ops.floor((self.total_count - 1) * _ops.exp(self.logits))
        return _ops.clamp(mode, 0, None)

    @property
    def variance(self):
        return self.mean / _ops.sigmoid(-self.logits)

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            shape = self._extended_shape(sample_shape)
            drawn = holdfast._standard_gamma(self.total_count.expand(shape))
            # total_count 0 has no successes.
            drawn = _ops.where(self.total_count > 0, drawn, 0.0)
            return holdfast.poisson(drawn * _ops.exp(self.logits))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        chances = self.total_count * softplus(self.logits)
        chances = value * softplus(-self.logits) + chances
        count = self.total_count + value
        ways = (
            _ops.lgamma(count) - _ops.lgamma(value + 1) - _ops.lgamma(self.total_count)
        )
        # Without failures to wait for, 0 is certain.
        return _ops.where(_ops.eq(count, 0), 0.0, ways) - chances
