# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Invertible functions of tensors: what all have in common, and chains of them."""

import holdfast
from holdfast.distributions import constraints
from holdfast.distributions.parameters import sum_rightmost


class Transform:
    """A function with an inverse and the logarithm of its Jacobian's determinant.

    A subclass sets `domain`, `codomain` and, where there is a true inverse,
    `bijective`, and has _call, _inverse and log_abs_det_jacobian. cache_size=1
    keeps the latest pair, so that the inverse of a result is its argument itself.
    """

    bijective = False
    domain = constraints.real
    codomain = constraints.real

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1. Got {cache_size}.")
        self._cache_size = cache_size
        self._cached = None, None

    def __getstate__(self):
        return {**self.__dict__, "_cached": (None, None)}

    @property
    def event_dim(self):
        """Dimensions of one argument, where the result has as many."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse as a transform."""
        return _Inverse(self)

    @property
    def sign(self):
        """1 or -1 (or a tensor of them): growing or falling."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """The same transform with a cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x):
        """The transform of x."""
        argument, result = self._cached
        if argument is not None and x is argument:
            return result
        y = self._call(x)
        if self._cache_size:
            self._cached = x, y
        return y

    def _inv_call(self, y):
        argument, result = self._cached
        if result is not None and y is result:
            return argument
        x = self._inverse(y)
        if self._cache_size:
            self._cached = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx| at x, whose transform is y, without domain's dimensions."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The result's shape for an argument's."""
        return shape

    def inverse_shape(self, shape):
        """The argument's shape for a result's."""
        return shape

    def __repr__(self):
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """A transform's inverse, which shares its cache."""

    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._transform = transform

    @property
    def domain(self):
        return self._transform.codomain

    @property
    def codomain(self):
        return self._transform.domain

    @property
    def bijective(self):
        return self._transform.bijective

    @property
    def sign(self):
        return self._transform.sign

    @property
    def inv(self):
        return self._transform

    def with_cache(self, cache_size=1):
        return self._transform.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _Inverse) and self._transform == other._transform

    __hash__ = object.__hash__

    def __call__(self, x):
        return self._transform._inv_call(x)

    def _inv_call(self, y):
        return self._transform(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._transform.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._transform.forward_shape(shape)

    def __repr__(self):
        return f"_InverseTransform({self._transform!r})"


def _widened(constraint, event_dim):
    """The constraint for events of event_dim dimensions."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Transforms one after the other, the first of `parts` first."""

    def __init__(self, parts, cache_size=0):
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size)
        self.parts = list(parts)

    @property
    def domain(self):
        if not self.parts:
            return constraints.real
        rank = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            rank += part.domain.event_dim - part.codomain.event_dim
            rank = max(rank, part.domain.event_dim)
        return _widened(self.parts[0].domain, rank)

    @property
    def codomain(self):
        if not self.parts:
            return constraints.real
        rank = self.parts[0].domain.event_dim
        for part in self.parts:
            rank += part.codomain.event_dim - part.domain.event_dim
            rank = max(rank, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, rank)

    @property
    def bijective(self):
        """True if every part is."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self):
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return holdfast.zeros_like(x)
        total, rank = 0, self.domain.event_dim
        for i, part in enumerate(self.parts):
            result = y if i == len(self.parts) - 1 else part(x)
            jacobian = part.log_abs_det_jacobian(x, result)
            total = total + sum_rightmost(jacobian, rank - part.domain.event_dim)
            rank += part.codomain.event_dim - part.domain.event_dim
            x = result
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, self.parts))})"


class IndependentTransform(Transform):
    """A transform whose last reinterpreted_batch_ndims further dimensions count as
    one event: their Jacobians are added."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size
        )

    @property
    def domain(self):
        return constraints.independent(
            self.base_transform.domain, self.reinterpreted_batch_ndims
        )

    @property
    def codomain(self):
        return constraints.independent(
            self.base_transform.codomain, self.reinterpreted_batch_ndims
        )

    @property
    def bijective(self):
        """As the transform underneath."""
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def __eq__(self, other):
        return (
            isinstance(other, IndependentTransform)
            and self.base_transform == other.base_transform
            and self.reinterpreted_batch_ndims == other.reinterpreted_batch_ndims
        )

    __hash__ = object.__hash__

    def _require_rank(self, x, rank):
        if x.dim() < rank:
            raise ValueError(f"Too few dimensions on input. Got {x.dim()} < {rank}.")

    def _call(self, x):
        self._require_rank(x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        self._require_rank(y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        jacobian = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(jacobian, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return (
            f"{type(self).__name__}({self.base_transform!r}, "
            f"{self.reinterpreted_batch_ndims})"
        )
