# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What all distributions have in common: shapes, checks, names of methods."""

import warnings

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.parameters import lazy_property

_ops = _C.ops
Size, Tensor = _C.Size, _C.Tensor


class Distribution:
    """A batch of distributions, PyTorch's torch.distributions.Distribution.

    A sample has the shape sample_shape + batch_shape + event_shape. Parameters
    are checked when a distribution is made, and values by log_prob, cdf and icdf,
    which waits for the daemon once (ValueError); `validate_args=False` does
    without. A subclass whose parameters all have the shape of the batch lists
    them in `_batch_parameters` and needs no expand() of its own.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _batch_parameters = None

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions made from now on check; ValueError if no bool."""
        if value not in (True, False):
            raise ValueError(f"value must be True or False. Got {value!r}.")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self):
        """ValueError for the first parameter outside its constraint."""
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        checks = []
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if lazy and name not in self.__dict__:
                continue
            value = getattr(self, name)
            valid = _ops.all(constraint.check(value))
            checks.append((name, constraint, value, valid))
        # One answer to wait for, whatever the number of parameters.
        if not checks or _ops.all(holdfast.stack([c[-1] for c in checks])).item():
            return
        for name, constraint, value, valid in checks:
            if not valid.item():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _validate_sample(self, value):
        """ValueError unless value fits the shapes and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                "The value argument to log_prob must be a Tensor. "
                f"Got {type(value).__name__}."
            )
        actual, expected = value.shape, self._batch_shape + self._event_shape
        rank = len(self._event_shape)
        if rank and tuple(actual[-rank:]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{tuple(actual)} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(actual), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{tuple(actual)} vs {tuple(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample "
                "validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not _ops.all(support.check(value)).item():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape "
                f"{tuple(actual)}) to be within the support ({support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def expand(self, batch_shape, _instance=None):
        """The distribution with its batch expanded, without copies or checks."""
        owner = next(
            (c for c in type(self).__mro__ if c.__dict__.get("_batch_parameters")), None
        )
        if owner is None:
            raise NotImplementedError(f"{type(self).__name__} has no expand()")
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        for name in self._batch_parameters:
            if name in self.__dict__:
                setattr(new, name, getattr(self, name).expand(batch_shape))
        return self._as_expanded(new, batch_shape, self._event_shape)

    def _as_expanded(self, new, batch_shape, event_shape):
        """Completes what expand() made."""
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a "
                "custom __init__ method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    @property
    def batch_shape(self):
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample of one entry of the batch."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Parameter name -> what it must satisfy."""
        raise NotImplementedError

    @property
    def support(self):
        """What samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean, batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most likely value, batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance, batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The square root of the variance."""
        return _ops.sqrt(self.variance)

    def sample(self, sample_shape=()):
        """Samples, sample_shape + batch_shape + event_shape, outside the graph."""
        with holdfast.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Samples that are differentiable functions of the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample()")

    def sample_n(self, n):
        """sample((n,)) by its old name."""
        warnings.warn(
            "sample_n will be deprecated. Use .sample((n,)) instead",
            UserWarning,
            stacklevel=2,
        )
        return self.sample((n,))

    def log_prob(self, value):
        """The logarithm of the density or probability of value, which broadcasts
        with batch_shape + event_shape."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of not more than value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf()")

    def icdf(self, value):
        """The inverse of cdf()."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf()")

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support()")

    def entropy(self):
        """The entropy in nats, batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy()")

    def perplexity(self):
        """exp(entropy)."""
        return _ops.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values, expand):
        """The 1-D values along a first dimension, before the batch's."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def __repr__(self):
        parts = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if value is not None:
                shown = value if value.numel() == 1 else value.shape
                parts.append(f"{name}: {shown}")
        return f"{type(self).__name__}({', '.join(parts)})"
