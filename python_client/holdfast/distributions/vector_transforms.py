# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms whose results are probability vectors and Cholesky factors."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.transform import Transform
from holdfast.nn.functional import softplus

_ops = _C.ops


class StickBreakingTransform(Transform):
    """Real vectors [..., K - 1] to probability vectors [..., K], one to one: entry k
    takes sigmoid(x_k - log(K - 1 - k)) of what the ones before it have left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    @staticmethod
    def _log_left(x):
        """log(K - 1 - k) of the entries k, [K - 1]."""
        return _ops.log(holdfast.arange(x.shape[-1], 0, -1, dtype=x.dtype))

    def _call(self, x):
        taken = _ops.sigmoid(x - self._log_left(x))
        one = holdfast.ones_like(x[..., :1])
        left = holdfast.cat([one, _ops.cumprod(1 - taken, -1)], -1)
        return holdfast.cat([taken, one], -1) * left

    def _inverse(self, y):
        part = y[..., :-1]
        tiny = holdfast.finfo(y.dtype).tiny
        left = _ops.clamp(1 - _ops.cumsum(part, -1), tiny, None)
        return _ops.log(part) - _ops.log(left) + self._log_left(part)

    def log_abs_det_jacobian(self, x, y):
        return (_ops.log(y[..., :-1]) - softplus(x - self._log_left(x))).sum(-1)

    def forward_shape(self, shape):
        if not len(shape):
            raise ValueError("Too few dimensions on input. Got a number.")
        return tuple(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        if not len(shape):
            raise ValueError("Too few dimensions on input. Got a number.")
        return tuple(shape[:-1]) + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """Square matrices [..., n, n] to Cholesky factors: what is above the diagonal is
    lost, and the diagonal becomes positive by exp()."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = object.__hash__

    def _call(self, x):
        diagonal = _ops.exp(x.diagonal(dim1=-2, dim2=-1))
        return _ops.tril(x, -1) + holdfast.diag_embed(diagonal)

    def _inverse(self, y):
        diagonal = _ops.log(y.diagonal(dim1=-2, dim2=-1))
        return _ops.tril(y, -1) + holdfast.diag_embed(diagonal)


class CorrCholeskyTransform(Transform):
    """Real vectors [..., n (n - 1) / 2] to Cholesky factors [..., n, n] of correlation
    matrices, one to one: tanh() of entry k is what row i takes, in column j, of the
    length that the columns before have left."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def __eq__(self, other):
        return isinstance(other, CorrCholeskyTransform)

    __hash__ = object.__hash__

    @staticmethod
    def _below(size, offset=-1):
        rows, columns = holdfast.tril_indices(size, size, offset)
        return rows, columns

    def _call(self, x):
        size = self.forward_shape(x.shape)[-1]
        eps = holdfast.finfo(x.dtype).eps
        taken = holdfast.zeros((*tuple(x.shape[:-1]), size, size), dtype=x.dtype)
        rows, columns = self._below(size)
        inside = _ops.clamp(_ops.tanh(x), -1 + eps, 1 - eps)
        taken = taken.index_put((..., rows, columns), inside)
        left = _ops.cumprod(_ops.sqrt(1 - taken**2), -1)[..., :-1]
        left = holdfast.cat([holdfast.ones_like(taken[..., :1]), left], -1)
        return (taken + holdfast.eye(size, dtype=x.dtype)) * left

    @staticmethod
    def _left(y):
        """The squared length that the columns before have left."""
        left = 1 - _ops.cumsum(y**2, -1)[..., :-1]
        return holdfast.cat([holdfast.ones_like(y[..., :1]), left], -1)

    def _inverse(self, y):
        rows, columns = self._below(y.shape[-1])
        left = self._left(y)[..., rows, columns]
        return _ops.atanh(y[..., rows, columns] * _ops.rsqrt(left))

    def log_abs_det_jacobian(self, x, y):
        rows, columns = self._below(y.shape[-1])
        left = _ops.log(self._left(y)[..., rows, columns])
        # log(1 - tanh(x)^2)
        slope = 2 * (math.log(2) - x - softplus(-2 * x))
        return (0.5 * left + slope).sum(-1)

    def forward_shape(self, shape):
        if not len(shape):
            raise ValueError("Too few dimensions on input. Got a number.")
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError(
                "Input is not a flattened lower-diagonal number: its size must be "
                f"n (n - 1) / 2. Got {count}."
            )
        return tuple(shape[:-1]) + (size, size)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError(f"Too few dimensions on input. Got {len(shape)} < 2.")
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square. Got {tuple(shape)}.")
        return tuple(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)
