# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The binomial distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.gamma_sampling import log_gamma
from holdfast.distributions.parameters import (
    broadcast_scalars,
    require_one,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits

_ops = _C.ops

# Below that many trials each is drawn by itself.
_FEW = 16


def draw(total_count, probs):
    """Binomial random numbers in the shape and type of probs, outside the graph;
    total_count (whole, >= 0) has the same shape.

    The median of the n uniform numbers below probs is a beta number, which halves
    n at a time (Ahrens & Dieter 1974) down to a few trials; waits once for the
    largest n.
    """
    with holdfast.no_grad():
        left, p = total_count.double(), probs.double()
        count = holdfast.zeros_like(p)
        most = int(left.max().item()) if left.numel() else 0
        while most > _FEW:
            # The a-th smallest of `left` uniform numbers, b - 1 lie above it.
            a = _ops.floor(left / 2) + 1
            b = left + 1 - a
            many = left > _FEW
            odds = log_gamma(_ops.where(many, b, 1.0)) - log_gamma(
                _ops.where(many, a, 1.0)
            )
            middle = 1 / (1 + odds.exp())
            below = many & (middle <= p)
            above = many & (middle > p)
            count = count + _ops.where(below, a, 0.0)
            left = _ops.where(below, b - 1, _ops.where(above, a - 1, left))
            p = _ops.where(
                below, (p - middle) / (1 - middle), _ops.where(above, p / middle, p)
            )
            most = most // 2
        trial = holdfast.arange(_FEW, dtype=_C.float64)
        drawn = _ops.rand((*tuple(p.shape), _FEW), dtype=_C.float64)
        hits = (drawn < p.unsqueeze(-1)) & (trial < left.unsqueeze(-1))
        return _ops.to(count + hits.sum(-1), probs.dtype)


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in total_count trials, each of probability probs or
    log odds logits."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batch_parameters = ("total_count", "probs", "logits")

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        given = probs if logits is None else logits
        (total, given), batch_shape = broadcast_scalars(total_count, given)
        if not given.is_floating_point():  # of a whole total_count
            given = broadcast_scalars(probs if logits is None else logits)[0][0]
            given = given.expand(batch_shape)
        self.total_count = _ops.to(total, given.dtype)
        setattr(self, "probs" if logits is None else "logits", given)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        mode = _ops.floor((self.total_count + 1) * self.probs)
        return _ops.minimum(mode, self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with holdfast.no_grad():
            count, probs = self.total_count.expand(shape), self.probs.expand(shape)
            return holdfast.binomial(count, probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # n log(1 + exp(logits)), exact for logits of either sign.
        softplus = _ops.relu(self.logits) + _ops.log1p(_ops.exp(-_ops.abs(self.logits)))
        return (
            value * self.logits
            - self.total_count * softplus
            + _ops.lgamma(self.total_count + 1)
            - _ops.lgamma(value + 1)
            - _ops.lgamma(self.total_count - value + 1)
        )

    def _one_count(self, name):
        """total_count, the same in the whole batch; NotImplementedError if not."""
        low, high = self.total_count.min().item(), self.total_count.max().item()
        if low != high:
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{name}`. "
                f"Got {low} to {high}."
            )
        return int(high)

    def entropy(self):
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(_ops.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = self._one_count("enumerate_support")
        values = holdfast.arange(count + 1, dtype=self._param.dtype)
        return self._enumerated(values, expand)
