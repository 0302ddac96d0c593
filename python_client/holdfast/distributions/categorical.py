# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The categorical distribution."""

import math

import holdfast
from holdfast import _C
from holdfast._registry import FUNCTIONS
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    require_one,
)
from holdfast.sampling import drawn_with_replacement

_ops = _C.ops
Size = _C.Size

_multinomial = FUNCTIONS["multinomial"]


class Categorical(Distribution):
    """Indices 0 .. K-1 (int64) by the weights in the last dimension, [..., K], of
    probs (not negative; need not sum to 1) or of logits, their logarithms."""

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        if given.dim() < 1:
            raise ValueError(
                f"`{name}` parameter must be at least one-dimensional. "
                f"Got a tensor of shape {tuple(given.shape)}."
            )
        if not given.shape[-1]:
            raise ValueError(f"`{name}` has no events. Got {tuple(given.shape)}.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _param(self):
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def _num_events(self):
        return self._param.shape[-1]

    @property
    def param_shape(self):
        """The shape of the parameter that was given, [..., K]."""
        return self._param.shape

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        batch_shape = Size(batch_shape)
        for name in ("probs", "logits"):
            if name in self.__dict__:
                shape = batch_shape + (self._num_events,)
                setattr(new, name, getattr(self, name).expand(shape))
        return self._as_expanded(new, batch_shape, ())

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """Log probabilities, [..., K]."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """Probabilities, [..., K]."""
        return logits_to_probs(self.logits)

    @property
    def mean(self):
        return self.probs.new_full(self._batch_shape, math.nan)

    @property
    def mode(self):
        return self.probs.argmax(-1)

    @property
    def variance(self):
        return self.probs.new_full(self._batch_shape, math.nan)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        count = math.prod(Size(sample_shape))
        if not math.prod(shape):
            return holdfast.zeros(shape, dtype=_C.int64)
        weights = self.probs.detach().reshape((-1, self._num_events))
        # Of checked weights. multinomial() checks them again and waits for what it
        # finds; where a program has put its own in its place, that one draws.
        if holdfast.multinomial is _multinomial:
            drawn = drawn_with_replacement(weights, count)
        else:
            drawn = holdfast.multinomial(weights, count, True)
        return drawn.T.reshape(shape)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = holdfast.broadcast_tensors(
            value.long().unsqueeze(-1), self.logits
        )
        return _ops.gather(logits, -1, value[..., :1]).squeeze(-1)

    def entropy(self):
        # A probability of 0 counts nothing, though its logarithm is infinite.
        logits = _ops.clamp(self.logits, holdfast.finfo(self.logits.dtype).min, None)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._enumerated(holdfast.arange(self._num_events), expand)
