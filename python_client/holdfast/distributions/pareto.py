# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Pareto distribution of the first kind."""

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exponential import Exponential
from holdfast.distributions.parameters import broadcast_all
from holdfast.distributions.transformed_distribution import TransformedDistribution
from holdfast.distributions.transforms import AffineTransform, ExpTransform

_ops = _C.ops


class Pareto(TransformedDistribution):
    """scale * exp(E) for E exponential of rate alpha: numbers from scale > 0 on
    with a tail of power alpha > 0, which broadcast to the batch. The mean is
    infinite where alpha <= 1, the variance where alpha <= 2."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        # This distribution's own check names the parameter.
        base = Exponential(self.alpha, validate_args=False)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Pareto, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.alpha = self.alpha.expand(batch_shape)
        return super().expand(batch_shape, new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        alpha = _ops.clamp(self.alpha, 1, None)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        alpha = _ops.clamp(self.alpha, 2, None)
        return self.scale**2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return super().cdf(value)

    def entropy(self):
        return _ops.log(self.scale / self.alpha) + (1 + 1 / self.alpha)
