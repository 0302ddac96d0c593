# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The beta distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.dirichlet import Dirichlet
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.parameters import broadcast_all

_ops = _C.ops
Size = _C.Size


class Beta(ExponentialFamily):
    """Beta numbers in (0, 1) of the shapes concentration1 and concentration0, both
    > 0."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        pair = broadcast_all(concentration1, concentration0)
        # This distribution's own check names the parameter.
        self._dirichlet = Dirichlet(holdfast.stack(pair, -1), validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Beta, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return self._as_expanded(new, Size(batch_shape), ())

    @property
    def concentration1(self):
        """The weight of 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        """The weight of 0."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(holdfast.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _mean_carrier_measure(self):
        return self._dirichlet._mean_carrier_measure

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return _ops.lgamma(x) + _ops.lgamma(y) - _ops.lgamma(x + y)
