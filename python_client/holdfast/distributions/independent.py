# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Batch dimensions as dimensions of the event."""

from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import sum_rightmost

Size = _C.Size


class Independent(Distribution):
    """The last reinterpreted_batch_ndims dimensions of base_distribution's batch,
    which are independent of each other, count as dimensions of the event."""

    arg_constraints = {}

    def __init__(
        self, base_distribution, reinterpreted_batch_ndims, validate_args=None
    ):
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError(
                "Expected 0 <= reinterpreted_batch_ndims <= "
                "len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}."
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        kept = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:kept], batch[kept:] + event, validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        batch_shape, count = Size(batch_shape), self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[:count])
        new.reinterpreted_batch_ndims = count
        return self._as_expanded(new, batch_shape, self.event_shape)

    @property
    def has_rsample(self):
        """As the distribution underneath."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        """As the distribution underneath, if no dimension is reinterpreted."""
        return (
            not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support
        )

    @constraints.dependent_property
    def support(self):
        support = self.base_dist.support
        if not self.reinterpreted_batch_ndims:
            return support
        return constraints.independent(support, self.reinterpreted_batch_ndims)

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        log_prob = self.base_dist.log_prob(value)
        return sum_rightmost(log_prob, self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return (
            f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
        )
