# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Bernoulli distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import (
    broadcast_all,
    broadcast_scalars,
    require_one,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits
from holdfast.nn.functional import binary_cross_entropy_with_logits, softplus

_ops = _C.ops


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability probs in [0, 1], or with log odds logits; else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _batch_parameters = ("probs", "logits")
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        if probs is not None:
            (self.probs,), batch_shape = broadcast_scalars(probs)
        else:
            (self.logits,), batch_shape = broadcast_scalars(logits)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        likely = _ops.to(self.probs >= 0.5, self.probs.dtype)
        return _ops.where(_ops.eq(self.probs, 0.5), math.nan, likely)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            shape = self._extended_shape(sample_shape)
            return holdfast.bernoulli(self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )

    def enumerate_support(self, expand=True):
        values = holdfast.arange(2, dtype=self._param.dtype)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        return softplus(x)
