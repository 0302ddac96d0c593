# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One-hot vectors made continuous, so that samples have gradients."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.categorical import Categorical
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import clamp_probs, uniform
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import ExpTransform

_ops = _C.ops


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical's vectors: log softmax of (logits +
    Gumbel noise) over temperature > 0 (Maddison et al. 2017)."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    # They lie on a surface in it, where exp() sums to 1.
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, False)
        dtype = self._categorical._param.dtype
        self.temperature = holdfast.as_tensor(temperature, dtype=dtype)
        event_shape = self.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._as_expanded(new, batch_shape, self.event_shape)

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

    def rsample(self, sample_shape=()):
        drawn = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        gumbel = -_ops.log(-_ops.log(drawn))
        return _ops.log_softmax((self.logits + gumbel) / self.temperature, -1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        count = self.event_shape[0]
        constant = math.lgamma(count) + (count - 1) * _ops.log(self.temperature)
        scores = self.logits - value * self.temperature
        return _ops.log_softmax(scores, -1).sum(-1) + constant


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probability vectors [K], the nearer to a corner the smaller temperature > 0 (a
    number or a tensor of no dimensions); the largest place is drawn by weights as of
    Categorical, [..., K]. rsample() has gradients with respect to all of them."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, new)

    @property
    def temperature(self):
        """As given."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Log probabilities, [..., K]."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities of each place being the largest, [..., K]."""
        return self.base_dist.probs
