# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms that reshape, and that treat slices along a dimension differently."""

import math

import holdfast
from holdfast.distributions import constraints
from holdfast.distributions.parameters import sum_rightmost
from holdfast.distributions.transform import Transform


class ReshapeTransform(Transform):
    """Events of in_shape in the shape out_shape, which has as many elements."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = holdfast.Size(in_shape), holdfast.Size(
            out_shape
        )
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                "in_shape, out_shape have different numbers of elements. "
                f"Got {tuple(in_shape)} and {tuple(out_shape)}."
            )
        super().__init__(cache_size)

    @property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def __eq__(self, other):
        return (
            isinstance(other, ReshapeTransform)
            and self.in_shape == other.in_shape
            and self.out_shape == other.out_shape
        )

    __hash__ = object.__hash__

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return holdfast.zeros(
            tuple(x.shape[: x.dim() - len(self.in_shape)]), dtype=x.dtype
        )

    @staticmethod
    def _replaced(shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(
                f"Shape mismatch: expected {tuple(old)} but got {tuple(shape[cut:])}"
            )
        return tuple(shape[:cut]) + tuple(new)

    def forward_shape(self, shape):
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._replaced(shape, self.out_shape, self.in_shape)


class _Sequence(Transform):
    """Transforms of the pieces that _cut() makes and _join() puts together."""

    def __init__(self, tseq, dim, cache_size):
        if not all(isinstance(t, Transform) for t in tseq):
            raise ValueError(f"Expected a sequence of transforms. Got {tseq!r}.")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def bijective(self):
        """True if all of them are."""
        return all(t.bijective for t in self.transforms)

    def _call(self, x):
        return self._join([t(p) for t, p in zip(self.transforms, self._cut(x))])

    def _inverse(self, y):
        return self._join([t.inv(p) for t, p in zip(self.transforms, self._cut(y))])


class CatTransform(_Sequence):
    """Pieces of `lengths` (one each) along `dim`, each by its own transform."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"There must be a length per transform. Got {len(self.lengths)} for "
                f"{len(self.transforms)}."
            )

    @property
    def event_dim(self):
        """The largest of theirs."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self):
        """Of all pieces together."""
        return sum(self.lengths)

    @property
    def domain(self):
        return constraints.cat(
            [t.domain for t in self.transforms], self.dim, self.lengths
        )

    @property
    def codomain(self):
        return constraints.cat(
            [t.codomain for t in self.transforms], self.dim, self.lengths
        )

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _cut(self, x):
        if x.shape[self.dim] != self.length:
            raise ValueError(
                f"Dimension {self.dim} must have the size {self.length} of all pieces. "
                f"Got shape {tuple(x.shape)}."
            )
        return holdfast.split(x, self.lengths, self.dim)

    def _join(self, pieces):
        return holdfast.cat(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self.transforms, self._cut(x), self._cut(y))
        return holdfast.cat(
            [
                sum_rightmost(
                    t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim
                )
                for t, a, b in pairs
            ],
            self.dim + self.event_dim if self.dim < 0 else self.dim,
        )


class StackTransform(_Sequence):
    """Slices along `dim`, each by its own transform."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    @property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _cut(self, x):
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"Dimension {self.dim} must have the size {len(self.transforms)}, one "
                f"per transform. Got shape {tuple(x.shape)}."
            )
        return holdfast.unbind(x, self.dim)

    def _join(self, pieces):
        return holdfast.stack(pieces, self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self.transforms, self._cut(x), self._cut(y))
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in pairs])
