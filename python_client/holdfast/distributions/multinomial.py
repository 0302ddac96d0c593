# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The multinomial distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.binomial import Binomial
from holdfast.distributions.categorical import Categorical
from holdfast.distributions.distribution import Distribution

_ops = _C.ops
Size = _C.Size


class Multinomial(Distribution):
    """How often each of K indices comes in total_count draws, by weights as of
    Categorical, [..., K]."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"inhomogeneous total_count is not supported. Got {total_count!r}."
            )
        if total_count < 0:
            raise ValueError(f"total_count must be >= 0. Got {total_count}.")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=False)
        shape = self.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        return self._as_expanded(new, batch_shape, self.event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def probs(self):
        """Probabilities, [..., K]."""
        return self._categorical.probs

    @property
    def logits(self):
        """Log probabilities, [..., K]."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter that was given, [..., K]."""
        return self._categorical.param_shape

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        drawn = self._categorical.sample((self.total_count, *Size(sample_shape)))
        drawn = holdfast.movedim(drawn, 0, -1)
        counts = holdfast.zeros(shape, dtype=self._categorical._param.dtype)
        ones = holdfast.ones(drawn.shape, dtype=counts.dtype)
        return counts.scatter_add(-1, drawn, ones)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # What has probability 0 and does not occur adds nothing.
        absent = _ops.eq(value, 0) & _ops.eq(self.logits, -math.inf)
        logits = _ops.where(absent, 0.0, self.logits)
        return (
            _ops.lgamma(value.sum(-1) + 1)
            - _ops.lgamma(value + 1).sum(-1)
            + (logits * value).sum(-1)
        )

    def entropy(self):
        count = self.total_count
        one = Binomial(count, probs=self.probs, validate_args=False)
        values = one.enumerate_support(expand=False)[1:]
        weights = _ops.exp(one.log_prob(values)) * _ops.lgamma(values + 1)
        return (
            count * self._categorical.entropy()
            - math.lgamma(count + 1)
            + weights.sum([0, -1])
        )
