# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Mixtures of distributions of one family."""

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.categorical import Categorical
from holdfast.distributions.distribution import Distribution

_ops = _C.ops
Size = _C.Size


class MixtureSameFamily(Distribution):
    """Draws from the entry of the last batch dimension, [..., k], of
    component_distribution that mixture_distribution, a Categorical, draws."""

    arg_constraints = {}

    def __init__(
        self, mixture_distribution, component_distribution, validate_args=None
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                f"distributions.Categorical. Got {type(mixture_distribution).__name__}."
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "distributions.Distribution. "
                f"Got {type(component_distribution).__name__}."
            )
        mixture, component = (
            mixture_distribution.batch_shape,
            component_distribution.batch_shape,
        )
        if not component:
            raise ValueError("component_distribution.batch_shape is empty.")
        for i, j in zip(reversed(mixture), reversed(component[:-1])):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({tuple(mixture)}) is not "
                    "compatible with `component_distribution.batch_shape` "
                    f"({tuple(component)})"
                )
        if mixture_distribution.param_shape[-1] != component[-1]:
            raise ValueError(
                "`mixture_distribution component` "
                f"({mixture_distribution.param_shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component[-1]})"
            )
        self._mixture_distribution = mixture_distribution.expand(component[:-1])
        self._component_distribution = component_distribution
        super().__init__(
            component[:-1], component_distribution.event_shape, validate_args
        )

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        count = self._component_distribution.batch_shape[-1]
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (count,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return self._as_expanded(new, batch_shape, self.event_shape)

    @constraints.dependent_property
    def support(self):
        return self._component_distribution.support

    @property
    def mixture_distribution(self):
        """The Categorical, over the batch."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components, batch_shape + [k]."""
        return self._component_distribution

    @property
    def _component_dim(self):
        return -1 - len(self.event_shape)

    def _weighted(self, values):
        """The mean of values batch_shape + [k] + event_shape over k."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *(1,) * len(self.event_shape)))
        return (probs * values).sum(self._component_dim)

    @property
    def mean(self):
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self):
        # Within the components, and between them.
        between = self._component_distribution.mean - self._padded(self.mean)
        return self._weighted(self._component_distribution.variance + between**2)

    def _padded(self, value):
        return value.unsqueeze(self._component_dim)

    def cdf(self, value):
        cdf = self._component_distribution.cdf(self._padded(value))
        return (cdf * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self._component_distribution.log_prob(self._padded(value))
        weights = _ops.log_softmax(self._mixture_distribution.logits, -1)
        return (log_prob + weights).logsumexp(-1)

    def sample(self, sample_shape=()):
        with holdfast.no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            dim = which.dim()
            event = tuple(self.event_shape)
            which = which.reshape((*which.shape, *(1,) * (1 + len(event))))
            which = which.expand((*which.shape[: dim + 1], *event))
            return _ops.gather(values, dim, which).squeeze(dim)

    def __repr__(self):
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
            f"{self._component_distribution})"
        )
