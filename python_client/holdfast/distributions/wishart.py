# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Wishart distribution."""

import math
import numbers

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.exp_family import ExponentialFamily
from holdfast.distributions.gamma_sampling import log_gamma
from holdfast.distributions.multivariate_normal import (
    _factor_of_precision,
    log_diagonal_sum,
)
from holdfast.distributions.parameters import lazy_property, standard_normal

_ops = _C.ops
Size = _C.Size


def _digamma_sum(x, p):
    """The slope of mvlgamma(x, p)."""
    steps = 0.5 * holdfast.arange(p, dtype=x.dtype)
    return _ops.digamma(x.unsqueeze(-1) - steps).sum(-1)


def _trace_of_solved(tril, matrix):
    """trace((tril tril.mT)^-1 matrix); the leading dimensions broadcast."""
    shape = holdfast.broadcast_shapes(tril.shape, matrix.shape)
    solved = holdfast.cholesky_solve(matrix.expand(shape), tril.expand(shape))
    return solved.diagonal(dim1=-2, dim2=-1).sum(-1)


class Wishart(ExponentialFamily):
    """Covariance matrices [p, p] of df > p - 1 degrees of freedom, [...], and one of
    covariance_matrix, precision_matrix (its inverse) and scale_tril (its Cholesky
    factor), [..., p, p]."""

    arg_constraints = {
        "df": constraints.greater_than(0),
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: m for name, m in matrices.items() if m is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                f"may be specified. Got {len(given)}."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading "
                f"batch dimensions. Got shape {tuple(matrix.shape)}."
            )
        size = matrix.shape[-1]
        if isinstance(df, numbers.Number):
            df = holdfast.tensor(df, dtype=matrix.dtype)
        batch_shape = holdfast.broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand((*batch_shape, size, size)))
        if _ops.any(_ops.le(df, size - 1)).item():
            raise ValueError(
                f"Value of df={df.tolist()} expected to be greater than ndim - 1 = "
                f"{size - 1}."
            )
        super().__init__(batch_shape, (size, size), validate_args)
        if name == "scale_tril":
            self._tril = matrix
        elif name == "covariance_matrix":
            self._tril = _ops.linalg_cholesky(matrix)
        else:
            self._tril = _factor_of_precision(matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        new.df, new._tril = self.df.expand(batch_shape), self._tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                shape = batch_shape + self.event_shape
                setattr(new, name, getattr(self, name).expand(shape))
        return self._as_expanded(new, batch_shape, self.event_shape)

    def _in_batch(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of covariance_matrix, [..., p, p]."""
        return self._in_batch(self._tril)

    @lazy_property
    def covariance_matrix(self):
        """The mean divided by df, [..., p, p]."""
        return self._in_batch(_ops.matmul(self._tril, self._tril.mT))

    @lazy_property
    def precision_matrix(self):
        """The inverse of covariance_matrix, [..., p, p]."""
        return self._in_batch(holdfast.cholesky_inverse(self._tril))

    @property
    def _size(self):
        return self._event_shape[-1]

    @property
    def _wide_df(self):
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self):
        return self._wide_df * self.covariance_matrix

    @property
    def mode(self):
        """NaN where df <= p + 1."""
        factor = self._wide_df - self._size - 1
        factor = _ops.where(factor > 0, factor, math.nan)
        return factor * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._wide_df * (v**2 + outer)

    def rsample(self, sample_shape=(), max_try_correction=None):
        # Bartlett's: roots of chi-square numbers over the diagonal, normal ones below.
        # max_try_correction, for PyTorch's sake, has nothing to correct in float64.
        size = self._size
        shape = self._extended_shape(sample_shape)
        half = 0.5 * (
            self.df.unsqueeze(-1) - holdfast.arange(size, dtype=self.df.dtype)
        )
        roots = _ops.exp(0.5 * (log_gamma(half.expand(shape[:-1])) + math.log(2)))
        noise = _ops.tril(standard_normal(shape, self.df), -1)
        noise = noise + holdfast.diag_embed(_ops.to(roots, self.df.dtype))
        factor = _ops.matmul(self._tril, noise)
        return _ops.matmul(factor, factor.mT)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        size, half = self._size, 0.5 * self.df
        log_det = 2 * log_diagonal_sum(_ops.linalg_cholesky(value))
        return (
            -self.df * (0.5 * size * math.log(2) + log_diagonal_sum(self._tril))
            - holdfast.mvlgamma(half, size)
            + 0.5 * (self.df - size - 1) * log_det
            - 0.5 * _trace_of_solved(self._tril, value)
        )

    def entropy(self):
        size, half = self._size, 0.5 * self.df
        entropy = (
            (size + 1) * (log_diagonal_sum(self._tril) + 0.5 * size * math.log(2))
            + holdfast.mvlgamma(half, size)
            - 0.5 * (self.df - size - 1) * _digamma_sum(half, size)
            + half * size
        )
        return entropy.expand(self._batch_shape)

    def _divergence(self, other):
        """From this distribution to another Wishart."""
        size, half = self._size, 0.5 * self.df
        logs = log_diagonal_sum(other._tril) - log_diagonal_sum(self._tril)
        covariance = _ops.matmul(self._tril, self._tril.mT)
        return (
            other.df * logs
            + half * (_trace_of_solved(other._tril, covariance) - size)
            + holdfast.mvlgamma(0.5 * other.df, size)
            - holdfast.mvlgamma(half, size)
            + 0.5 * (self.df - other.df) * _digamma_sum(half, size)
        )

    @property
    def _natural_params(self):
        return 0.5 * self.df, -0.5 * self.precision_matrix

    def _log_normalizer(self, x, y):
        size = y.shape[-1]
        log_det = holdfast.linalg.slogdet(-y)[1]
        return -x * log_det + holdfast.mvlgamma(x, size)
