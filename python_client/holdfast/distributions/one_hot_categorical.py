# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The categorical distribution with vectors of one 1 for indices."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.categorical import Categorical
from holdfast.distributions.distribution import Distribution
from holdfast.nn.functional import one_hot

_ops = _C.ops
Size = _C.Size


class OneHotCategorical(Distribution):
    """Vectors [K] of zeros and one 1, by weights as of Categorical, in their type."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, False)
        event_shape = self.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
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

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def _one_hot(self, index):
        hot = one_hot(index, self.param_shape[-1])
        return _ops.to(hot, self._categorical._param.dtype)

    def sample(self, sample_shape=()):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        count = self.param_shape[-1]
        values = holdfast.eye(count, dtype=self._categorical._param.dtype)
        values = values.reshape((count,) + (1,) * len(self.batch_shape) + (count,))
        if not expand:
            return values
        return values.expand((count, *self.batch_shape, count))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """rsample() with the gradient of the probabilities (Bengio et al. 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
