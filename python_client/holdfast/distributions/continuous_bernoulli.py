# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The continuous Bernoulli distribution (Loaiza-Ganem & Cunningham 2019)."""

import math

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import (
    broadcast_scalars,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    require_one,
    uniform,
)
from holdfast.distributions.probs_or_logits import ProbsOrLogits
from holdfast.nn.functional import binary_cross_entropy_with_logits

_ops = _C.ops


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers x in [0, 1] of density proportional to probs^x (1 - probs)^(1 - x),
    probs in (0, 1) or of log odds logits. Between the two `lims` around 1/2, where
    the formulas cancel, they are replaced by their Taylor series."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batch_parameters = ("probs", "logits")
    _mean_carrier_measure = 0

    def __init__(
        self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None
    ):
        require_one(probs, logits, "`probs` or `logits`")
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        (given,), batch_shape = broadcast_scalars(given)
        setattr(self, name, given)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)
        if probs is not None:  # after the check, which would not see 1.5
            self.probs = clamp_probs(given)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return super().expand(batch_shape, new)

    @lazy_property
    def probs(self):
        """The density's ratio of 1 to the sum of 0's and 1's."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self):
        """Where the formulas do not cancel."""
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _safe_probs(self):
        """probs, away from 1/2: no NaN enters a gradient there."""
        return _ops.where(self._stable(), self.probs, self._lims[0])

    def log_norm(self):
        """The logarithm of the factor of the density, batch_shape."""
        safe = self._safe_probs()
        ratio = (_ops.log1p(-safe) - _ops.log(safe)) / (1 - 2 * safe)
        square = (self.probs - 0.5) ** 2
        series = math.log(2) + (4 / 3 + 104 / 45 * square) * square
        return _ops.where(self._stable(), _ops.log(ratio), series)

    @property
    def mean(self):
        safe = self._safe_probs()
        exact = safe / (2 * safe - 1) + 1 / (_ops.log1p(-safe) - _ops.log(safe))
        x = self.probs - 0.5
        return _ops.where(self._stable(), exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self):
        safe = self._safe_probs()
        odds = _ops.log1p(-safe) - _ops.log(safe)
        exact = safe * (safe - 1) / (1 - 2 * safe) ** 2 + 1 / odds**2
        square = (self.probs - 0.5) ** 2
        series = 1 / 12 - (1 / 15 - 128 / 945 * square) * square
        return _ops.where(self._stable(), exact, series)

    def rsample(self, sample_shape=()):
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_scalars(self.logits, value)[0]
        loss = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self.log_norm() - loss

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        safe = self._safe_probs()
        area = _ops.pow(safe, value) * _ops.pow(1 - safe, 1 - value) + safe - 1
        inside = _ops.where(self._stable(), area / (2 * safe - 1), value)
        return _ops.where(value <= 0, 0.0, _ops.where(value >= 1, 1.0, inside))

    def icdf(self, value):
        safe = self._safe_probs()
        rest = _ops.log1p(-safe)
        exact = _ops.log1p(-safe + value * (2 * safe - 1)) - rest
        return _ops.where(self._stable(), exact / (_ops.log(safe) - rest), value)

    def entropy(self):
        zero = _ops.log1p(-self.probs)
        odds = zero - _ops.log(self.probs)
        return self.mean * odds - self.log_norm() - zero

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = _ops.where(stable, x, self._lims[0] - 0.5)
        series = (0.5 + (1 / 24 - x**2 / 2880) * x) * x
        return _ops.where(stable, _ops.log(_ops.expm1(safe) / safe), series)
