# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions of functions of what others draw."""

from holdfast import _C
import holdfast
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.independent import Independent
from holdfast.distributions.parameters import sum_rightmost
from holdfast.distributions.transform import ComposeTransform, Transform

Size = _C.Size


class TransformedDistribution(Distribution):
    """What base_distribution draws, after `transforms` (one, or a list, the first
    of which comes first)."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list) or not all(
            isinstance(t, Transform) for t in transforms
        ):
            raise ValueError(
                "transforms must be a Transform or a list of Transforms. "
                f"Got {transforms!r}."
            )
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        base_rank, domain_rank = (
            len(base_distribution.event_shape),
            whole.domain.event_dim,
        )
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < domain_rank:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain_rank}, but got {tuple(base_shape)}."
            )
        # Parameters of the transforms may add to the batch.
        shape = Size(whole.forward_shape(base_shape))
        wide = Size(whole.inverse_shape(shape))
        if tuple(base_shape) != tuple(wide):
            base_distribution = base_distribution.expand(wide[: len(wide) - base_rank])
        if domain_rank > base_rank:
            base_distribution = Independent(base_distribution, domain_rank - base_rank)
        self.base_dist = base_distribution
        rank = whole.codomain.event_dim + max(base_rank - domain_rank, 0)
        cut = len(shape) - rank
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        kept = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:kept])
        new.transforms = self.transforms
        return self._as_expanded(new, batch_shape, self.event_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        """As the distribution underneath."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            value = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                value = transform(value)
            return value

    def rsample(self, sample_shape=()):
        value = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        rank, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            rank += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(jacobian, rank - transform.domain.event_dim)
            y = x
        log_prob = self.base_dist.log_prob(y)
        return total + sum_rightmost(log_prob, rank - len(self.base_dist.event_shape))

    def _turned(self, probability):
        """1 - probability where the transforms fall."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self._turned(value))
        for transform in self.transforms:
            value = transform(value)
        return value
