# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The multivariate normal distribution."""

import math

import holdfast
from holdfast import _C
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import lazy_property, standard_normal

_ops = _C.ops
Size = _C.Size


def log_diagonal_sum(tril):
    """Half of the log determinant of tril @ tril.mT."""
    return _ops.log(tril.diagonal(dim1=-2, dim2=-1)).sum(-1)


def squared_length(tril, vectors):
    """|tril^-1 v|^2 of vectors v [..., n]; the leading dimensions broadcast."""
    shape = holdfast.broadcast_shapes(tril.shape[:-2], vectors.shape[:-1])
    tril = tril.expand((*shape, *tril.shape[-2:]))
    columns = vectors.expand((*shape, vectors.shape[-1])).unsqueeze(-1)
    solved = _ops.linalg_solve_triangular(tril, columns, False)
    return (solved**2).sum([-2, -1])


def _factor_of_precision(precision):
    """The lower Cholesky factor of the inverse."""
    # The factor of the reversed matrix, reversed, is an upper factor, whose
    # inverse transposed is the lower one.
    factor = _ops.linalg_cholesky(_ops.flip(precision, [-2, -1]))
    upper = _ops.flip(factor, [-2, -1]).mT
    identity = holdfast.eye(precision.shape[-1], dtype=precision.dtype)
    identity = identity.expand(tuple(precision.shape))
    return _ops.linalg_solve_triangular(upper, identity, False)


class MultivariateNormal(Distribution):
    """Normal vectors [n] of mean loc [..., n] and one of covariance_matrix,
    precision_matrix (its inverse) and scale_tril (its Cholesky factor), [..., n, n].
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional. Got a number.")
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
        size = loc.shape[-1]
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading "
                f"batch dimensions. Got shape {tuple(matrix.shape)}."
            )
        if tuple(matrix.shape[-2:]) != (size, size):
            raise ValueError(
                f"{name} must be [..., {size}, {size}] as loc is "
                f"{tuple(loc.shape)}. Got shape {tuple(matrix.shape)}."
            )
        batch_shape = holdfast.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, size, size)))
        self.loc = loc.expand((*batch_shape, size))
        super().__init__(batch_shape, (size,), validate_args)
        # Of the matrix as it was given, without the batch's copies.
        if name == "scale_tril":
            self._tril = matrix
        elif name == "covariance_matrix":
            self._tril = _ops.linalg_cholesky(matrix)
        else:
            self._tril = _factor_of_precision(matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._tril = self._tril
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if name in self.__dict__:
                shape = batch_shape + self.event_shape + self.event_shape
                setattr(new, name, getattr(self, name).expand(shape))
        return self._as_expanded(new, batch_shape, self.event_shape)

    def _in_batch(self, matrix):
        shape = self._batch_shape + self._event_shape + self._event_shape
        return matrix.expand(shape)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance, [..., n, n]."""
        return self._in_batch(self._tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance, [..., n, n]."""
        return self._in_batch(_ops.matmul(self._tril, self._tril.mT))

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse, [..., n, n]."""
        return self._in_batch(holdfast.cholesky_inverse(self._tril))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = (self._tril**2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + _ops.matmul(self._tril, noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        length = squared_length(self._tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + length) - log_diagonal_sum(self._tril)

    def entropy(self):
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (constant + log_diagonal_sum(self._tril)).expand(self._batch_shape)
