# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Invertible functions of tensors, by PyTorch's names."""

import math
import numbers

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.parameters import broadcast_all, sum_rightmost
from holdfast.distributions.sequence_transforms import (
    CatTransform,
    ReshapeTransform,
    StackTransform,
)
from holdfast.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    Transform,
)
from holdfast.distributions.vector_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    StickBreakingTransform,
)
from holdfast.missing import module_getattr
from holdfast.nn.functional import softplus

_ops = _C.ops

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "identity_transform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
]


class _Plain(Transform):
    """A transform without parameters: equal to all of its class."""

    def __eq__(self, other):
        return type(other) is type(self)

    __hash__ = object.__hash__


class ExpTransform(_Plain):
    """y = exp(x)."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return _ops.exp(x)

    def _inverse(self, y):
        return _ops.log(y)

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(_Plain):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x):
        # Away from 0 and 1, whose inverses are infinite.
        limits = holdfast.finfo(x.dtype)
        return _ops.clamp(_ops.sigmoid(x), limits.tiny, 1 - limits.eps)

    def _inverse(self, y):
        limits = holdfast.finfo(y.dtype)
        y = _ops.clamp(y, limits.tiny, 1 - limits.eps)
        return _ops.log(y) - _ops.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Plain):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return _ops.log(-_ops.expm1(-y)) + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_Plain):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x):
        return _ops.tanh(x)

    def _inverse(self, y):
        return _ops.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # log(1 - tanh(x)^2) without cancellation.
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Plain):
    """y = |x|, whose inverse is taken as x = y."""

    codomain = constraints.positive

    def _call(self, x):
        return _ops.abs(x)

    def _inverse(self, y):
        return y


class SoftmaxTransform(_Plain):
    """y = softmax(x) over the last dimension; not one to one, log y inverts it."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return _ops.softmax(x, -1)

    def _inverse(self, y):
        return _ops.log(y)


def _same(a, b):
    """Equal numbers, or tensors equal everywhere; waits for tensors."""
    if isinstance(a, numbers.Number) and isinstance(b, numbers.Number):
        return a == b
    return bool(_ops.all(_ops.eq(holdfast.as_tensor(a), b)).item())


def _broadcast(shape, *parameters):
    shapes = [getattr(parameter, "shape", ()) for parameter in parameters]
    return holdfast.broadcast_shapes(tuple(shape), *map(tuple, shapes))


class PowerTransform(Transform):
    """y = x ** exponent for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    sign = 1

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size)

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and _same(
            self.exponent, other.exponent
        )

    __hash__ = object.__hash__

    def _call(self, x):
        return _ops.pow(x, self.exponent)

    def _inverse(self, y):
        return _ops.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return _ops.log(_ops.abs(self.exponent * y / x))

    def forward_shape(self, shape):
        return _broadcast(shape, self.exponent)

    def inverse_shape(self, shape):
        return _broadcast(shape, self.exponent)


class AffineTransform(Transform):
    """y = loc + scale * x (tensors or numbers); events have event_dim dimensions."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        """Dimensions of one argument."""
        return self._event_dim

    @property
    def domain(self):
        if not self._event_dim:
            return constraints.real
        return constraints.independent(constraints.real, self._event_dim)

    codomain = domain

    @property
    def sign(self):
        if isinstance(self.scale, numbers.Real):
            return (self.scale > 0) - (self.scale < 0)
        return _ops.sign(self.scale)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other):
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    __hash__ = object.__hash__

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, numbers.Real):
            slope = holdfast.full_like(x, math.log(abs(self.scale)))
        else:
            slope = _ops.log(_ops.abs(self.scale)).expand(
                _broadcast(x.shape, self.scale)
            )
        return sum_rightmost(slope, self._event_dim)

    def forward_shape(self, shape):
        return _broadcast(shape, self.loc, self.scale)

    def inverse_shape(self, shape):
        return _broadcast(shape, self.loc, self.scale)


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x), of a distribution of numbers."""

    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


identity_transform = ComposeTransform([])

__getattr__ = module_getattr("torch.distributions.transforms")
