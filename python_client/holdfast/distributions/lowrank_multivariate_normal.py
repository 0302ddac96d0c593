# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The multivariate normal distribution of a covariance of low rank and a diagonal."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.multivariate_normal import log_diagonal_sum
from holdfast.distributions.parameters import lazy_property, standard_normal

_ops = _C.ops
Size = _C.Size


def _require_shapes(loc, cov_factor, cov_diag):
    """The batch shape; ValueError unless they are [..., n], [..., n, m], [..., n]."""
    shapes = tuple(tuple(t.shape) for t in (loc, cov_factor, cov_diag))
    size = loc.shape[-1:]
    fits = loc.dim() >= 1 and cov_factor.dim() >= 2 and cov_diag.dim() >= 1
    if not fits or cov_factor.shape[-2:-1] != size or cov_diag.shape[-1:] != size:
        raise ValueError(
            "loc, cov_factor and cov_diag must be [..., n], [..., n, m] and "
            "[..., n]. Got shapes {}, {} and {}.".format(*shapes)
        )
    try:
        return Size(
            holdfast.broadcast_shapes(shapes[0][:-1], shapes[1][:-2], shapes[2][:-1])
        )
    except RuntimeError as error:
        raise ValueError(
            "Incompatible batch shapes: loc {}, cov_factor {}, cov_diag {}".format(
                *shapes
            )
        ) from error


class LowRankMultivariateNormal(Distribution):
    """Normal vectors [n] of mean loc [..., n] and covariance cov_factor @
    cov_factor.mT + diag(cov_diag), cov_factor [..., n, m] and cov_diag [..., n] > 0.

    log_prob(), entropy() and rsample() take time n m^2 and never make an n x n
    matrix (Woodbury's identity). ValueError for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        batch_shape = _require_shapes(loc, cov_factor, cov_diag)
        event_shape = loc.shape[-1:]
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        super().__init__(batch_shape, event_shape, validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new.cov_diag = self.cov_diag.expand(batch_shape + self.event_shape)
        new.cov_factor = self.cov_factor.expand(
            batch_shape + self.cov_factor.shape[-2:]
        )
        return self._as_expanded(new, batch_shape, self.event_shape)

    @lazy_property
    def _capacitance_tril(self):
        """The Cholesky factor [..., m, m] of 1 + factor.mT diag^-1 factor."""
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        inner = _ops.matmul(self.cov_factor.mT, scaled)
        identity = holdfast.eye(inner.shape[-1], dtype=inner.dtype)
        return _ops.linalg_cholesky(inner + identity)

    def _reduced(self, columns):
        """What Woodbury's identity takes away, a square: [..., m, k] of columns
        [..., n, k] whose rows are divided by cov_diag already."""
        inner = _ops.matmul(self.cov_factor.mT, columns)
        tril = self._capacitance_tril
        tril = tril.expand((*inner.shape[:-2], *tril.shape[-2:]))
        return _ops.linalg_solve_triangular(tril, inner, False)

    def squared_lengths(self, columns):
        """v . covariance^-1 v of the columns v of [..., n, k]: [..., k]."""
        scaled = columns / self.cov_diag.unsqueeze(-1)
        return (columns * scaled).sum(-2) - (self._reduced(scaled) ** 2).sum(-2)

    @lazy_property
    def half_log_det(self):
        """Half of the covariance's log determinant, batch_shape."""
        diagonal = 0.5 * _ops.log(self.cov_diag).sum(-1)
        return log_diagonal_sum(self._capacitance_tril) + diagonal

    @lazy_property
    def covariance_matrix(self):
        """The covariance, [..., n, n]."""
        product = _ops.matmul(self.cov_factor, self.cov_factor.mT)
        return product + holdfast.diag_embed(self.cov_diag)

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse, [..., n, n]."""
        diagonal = holdfast.diag_embed(1 / self.cov_diag)
        reduced = self._reduced(diagonal)
        return diagonal - _ops.matmul(reduced.mT, reduced)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance, [..., n, n]."""
        return _ops.linalg_cholesky(self.covariance_matrix)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        of_factor = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        of_diagonal = standard_normal(shape, self.loc)
        joint = _ops.matmul(self.cov_factor, of_factor.unsqueeze(-1)).squeeze(-1)
        return self.loc + joint + _ops.sqrt(self.cov_diag) * of_diagonal

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc).unsqueeze(-1)
        length = self.squared_lengths(distance).squeeze(-1)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + length) - self.half_log_det

    def entropy(self):
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return constant + self.half_log_det
