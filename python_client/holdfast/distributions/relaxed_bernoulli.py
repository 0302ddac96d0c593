# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Bernoulli numbers made continuous, so that samples have gradients."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import (
    broadcast_scalars,
    clamp_probs,
    require_one,
    uniform,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import SigmoidTransform
from holdfast.nn.functional import softplus

_ops = _C.ops


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log odds of RelaxedBernoulli's numbers: (logits + logistic noise) over
    temperature > 0 (Maddison et al. 2017)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("probs", "logits")

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (given,), batch_shape = broadcast_scalars(given)
        setattr(self, name, given)
        self.temperature = holdfast.as_tensor(temperature, dtype=given.dtype)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        return super().expand(batch_shape, new)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        drawn = clamp_probs(uniform(shape, self._param))
        noise = _ops.log(drawn) - _ops.log1p(-drawn)
        return (noise + self.logits) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = self.logits - value * self.temperature
        return _ops.log(self.temperature) + distance - 2 * softplus(distance)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1), the nearer to 0 or 1 the smaller temperature > 0 (a number
    or a tensor that broadcasts to the batch); P(X > 1/2) is probs in [0, 1], or of
    log odds logits. rsample() has gradients with respect to all of them."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedBernoulli, _instance)
        return super().expand(batch_shape, new)

    @property
    def temperature(self):
        """As given."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Log odds."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities of being nearer to 1 than to 0."""
        return self.base_dist.probs
