# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The geometric distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import (
    broadcast_scalars,
    empty,
    require_one,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits
from holdfast.nn.functional import binary_cross_entropy_with_logits

_ops = _C.ops


class Geometric(ProbsOrLogits, Distribution):
    """Failures (0, 1, ...) before the first success, whose probability is probs in
    (0, 1] or has the log odds logits."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batch_parameters = ("probs", "logits")

    def __init__(self, probs=None, logits=None, validate_args=None):
        require_one(probs, logits, "`probs` or `logits`")
        if probs is not None:
            (self.probs,), batch_shape = broadcast_scalars(probs)
        else:
            (self.logits,), batch_shape = broadcast_scalars(logits)
        super().__init__(batch_shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            if not _ops.all(self.probs > 0).item():
                raise ValueError(
                    f"Expected parameter probs (Tensor of shape {tuple(batch_shape)}) "
                    f"of distribution {self!r} to be positive but found invalid "
                    f"values:\n{self.probs}"
                )

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return self.probs.new_zeros(self._batch_shape)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            drawn = empty(self._extended_shape(sample_shape), self.probs)
            drawn = drawn.uniform_(holdfast.finfo(drawn.dtype).tiny, 1)
            return _ops.floor(_ops.log(drawn) / _ops.log1p(-self.probs))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # 0 log(0) is 0: certain success has no failures.
        certain = _ops.logical_and(_ops.eq(self.probs, 1), _ops.eq(value, 0))
        probs = _ops.where(certain, 0.0, self.probs)
        return value * _ops.log1p(-probs) + _ops.log(self.probs)

    def entropy(self):
        loss = binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )
        return loss / self.probs
