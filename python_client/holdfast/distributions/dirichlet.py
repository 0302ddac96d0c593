# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Dirichlet distribution."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily

_ops = _C.ops
Size = _C.Size


class Dirichlet(ExponentialFamily):
    """Probability vectors [K] of concentration > 0, [..., K]."""

    arg_constraints = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError(
                "`concentration` parameter must be at least one-dimensional. "
                f"Got a tensor of shape {tuple(concentration.shape)}."
            )
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Dirichlet, _instance)
        batch_shape = Size(batch_shape)
        new.concentration = self.concentration.expand(batch_shape + self.event_shape)
        return self._as_expanded(new, batch_shape, self.event_shape)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self):
        above = _ops.clamp(self.concentration - 1, 0, None)
        mode = above / above.sum(-1, keepdim=True)
        # Without a mode inside, a corner, as in PyTorch: NaN's, the first.
        corner = holdfast.zeros_like(mode)
        if corner.shape[-1]:
            corner[..., 0] = 1
        none = _ops.all(self.concentration < 1, -1, True)
        return _ops.where(none, corner, mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdim=True)
        return (
            self.concentration
            * (total - self.concentration)
            / (total**2 * (total + 1))
        )

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return holdfast._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (
            (_ops.log(value) * (self.concentration - 1)).sum(-1)
            + _ops.lgamma(self.concentration.sum(-1))
            - _ops.lgamma(self.concentration).sum(-1)
        )

    def entropy(self):
        alpha, count = self.concentration, self.concentration.shape[-1]
        total = alpha.sum(-1)
        return (
            _ops.lgamma(alpha).sum(-1)
            - _ops.lgamma(total)
            - (count - total) * _ops.digamma(total)
            - ((alpha - 1) * _ops.digamma(alpha)).sum(-1)
        )

    @property
    def _mean_carrier_measure(self):
        # log h(x) is -sum(log x).
        total = self.concentration.sum(-1, keepdim=True)
        return (_ops.digamma(total) - _ops.digamma(self.concentration)).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return _ops.lgamma(x).sum(-1) - _ops.lgamma(x.sum(-1))
