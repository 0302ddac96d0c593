# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms whose results are probability vectors and Cholesky factors."""

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
