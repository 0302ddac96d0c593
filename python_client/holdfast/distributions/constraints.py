# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sets that parameters and samples belong to, by PyTorch's names.

`check` answers element by element (event by event) with a bool tensor and waits
for nothing. Classes take arguments (`interval(0, 1)`); the names in lower case
without arguments (`positive`) are instances.
"""

from holdfast import _C
from holdfast.distributions.constraint import Constraint
from holdfast.distributions.sequence_constraints import cat, stack
from holdfast.dtypes import finfo
from holdfast.elementwise import isclose
from holdfast.missing import module_getattr

_ops = _C.ops

__all__ = [
    "boolean",
    "cat",
    "Constraint",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class _Dependent(Constraint):
    """A set that depends on other variables, and cannot be checked by itself."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self):
        """NotImplementedError where it is not known without an instance."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        """NotImplementedError where it is not known without an instance."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with what is known about it."""
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value):
        """ValueError: ask the constraint of an instance."""
        raise ValueError("Cannot determine validity of dependent constraint")

    def __repr__(self):
        return "Dependent()"


def is_dependent(constraint):
    """True if the constraint cannot be checked without an instance."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property whose value is a constraint; on the class it is `dependent`."""

    def __init__(
        self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented
    ):
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        """As a decorator with arguments."""
        return dependent_property(
            fn, is_discrete=self._is_discrete, event_dim=self._event_dim
        )


class independent(Constraint):
    """A set whose elements are batches of another's: in it where all are."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        if reinterpreted_batch_ndims < 0:
            raise ValueError(
                "reinterpreted_batch_ndims must be >= 0. "
                f"Got {reinterpreted_batch_ndims}."
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        """As the set underneath."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """Dimensions of one element."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        """True where every element of the event is in the set."""
        inside = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if inside.dim() < count:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.dim()}"
            )
        return _ops.all(inside, list(range(-count, 0))) if count else inside

    def __repr__(self):
        return (
            f"IndependentConstraint({self.base_constraint!r}, "
            f"{self.reinterpreted_batch_ndims})"
        )


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return _ops.logical_or(_ops.eq(value, 0), _ops.eq(value, 1))


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        bits = _ops.all(boolean.check(value), -1)
        return _ops.logical_and(bits, _ops.eq(_ops.sum(value, -1), 1))


def _whole(value):
    return _ops.eq(_ops.remainder(value, 1), 0)


class integer_interval(Constraint):
    """Whole numbers from lower_bound to upper_bound, both included."""

    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value):
        """True where value is whole and between the bounds."""
        inside = (value >= self.lower_bound) & (value <= self.upper_bound)
        return inside & _whole(value)

    def __repr__(self):
        return (
            f"IntegerInterval(lower_bound={self.lower_bound}, "
            f"upper_bound={self.upper_bound})"
        )


class _IntegerGreaterThan(Constraint):
    is_discrete = True

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return (value >= self.lower_bound) & _whole(value)

    def __repr__(self):
        return f"IntegerGreaterThan(lower_bound={self.lower_bound})"


class _Real(Constraint):
    def check(self, value):
        return _ops.eq(value, value)  # False for NaN


class greater_than(Constraint):
    """Numbers above lower_bound."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        """True where value is above the bound."""
        return _ops.gt(value, self.lower_bound)

    def __repr__(self):
        return f"GreaterThan(lower_bound={self.lower_bound})"


class greater_than_eq(Constraint):
    """Numbers not below lower_bound."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        """True where value is not below the bound."""
        return _ops.ge(value, self.lower_bound)

    def __repr__(self):
        return f"GreaterThanEq(lower_bound={self.lower_bound})"


class less_than(Constraint):
    """Numbers below upper_bound."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        """True where value is below the bound."""
        return _ops.lt(value, self.upper_bound)

    def __repr__(self):
        return f"LessThan(upper_bound={self.upper_bound})"


class interval(Constraint):
    """Numbers from lower_bound to upper_bound, both included."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value):
        """True where value is between the bounds."""
        return (value >= self.lower_bound) & (value <= self.upper_bound)

    def __repr__(self):
        return (
            f"Interval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"
        )


class half_open_interval(Constraint):
    """Numbers from lower_bound, which is included, to upper_bound, which is not."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value):
        """True where value is in [lower_bound, upper_bound)."""
        return (value >= self.lower_bound) & (value < self.upper_bound)

    def __repr__(self):
        return (
            f"HalfOpenInterval(lower_bound={self.lower_bound}, "
            f"upper_bound={self.upper_bound})"
        )


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        # What float32 leaves of a sum of one, as in PyTorch.
        near = _ops.lt(_ops.abs(_ops.sum(value, -1) - 1), 1e-6)
        return _ops.logical_and(_ops.all(value >= 0, -1), near)


class multinomial(Constraint):
    """Vectors of counts whose sum is at most upper_bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        """True for vectors (the last dimension) of such counts."""
        total = _ops.sum(value, -1) <= self.upper_bound
        return _ops.logical_and(_ops.all(value >= 0, -1), total)

    def __repr__(self):
        return f"Multinomial(upper_bound={self.upper_bound})"


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return _ops.all(_ops.eq(_ops.tril(value), value), [-2, -1])


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        diagonal = _ops.gt(value.diagonal(dim1=-2, dim2=-1), 0)
        return _ops.logical_and(lower_triangular.check(value), _ops.all(diagonal, -1))


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        close = 10 * value.shape[-1] * finfo(value.dtype).eps
        norm = _ops.sqrt(_ops.sum(value.detach() ** 2, -1))
        unit = _ops.all(_ops.abs(norm - 1) <= close, -1)
        return _ops.logical_and(lower_cholesky.check(value), unit)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        same = value.shape[-2] == value.shape[-1]
        return _ops.full(tuple(value.shape[:-2]), same, dtype=_C.bool)


class _Symmetric(_Square):
    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return _Square.check(self, value)
        return _ops.all(isclose(value, value.mT, atol=1e-6), [-2, -1])


class _PositiveDefinite(_Symmetric):
    def _allows(self, eigenvalues):
        return eigenvalues > 0

    def check(self, value):
        symmetric_ones = _Symmetric.check(self, value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric_ones
        # Eigenvalues and not a Cholesky factor: what is not definite is an answer
        # here, and no error. NaN would be one, so it is taken away before.
        safe = _ops.where(_ops.isfinite(value), value.detach(), 0.0)
        positive_ones = _ops.all(self._allows(_ops.linalg_eigvalsh(safe)), -1)
        return symmetric_ones & positive_ones & _ops.all(_ops.isfinite(value), [-2, -1])


class _PositiveSemidefinite(_PositiveDefinite):
    def _allows(self, eigenvalues):
        return eigenvalues >= 0


boolean = _Boolean()
corr_cholesky = _CorrCholesky()
dependent = _Dependent()
lower_cholesky = _LowerCholesky()
lower_triangular = _LowerTriangular()
nonnegative_integer = _IntegerGreaterThan(0)
one_hot = _OneHot()
positive = greater_than(0.0)
positive_definite = _PositiveDefinite()
positive_semidefinite = _PositiveSemidefinite()
positive_integer = _IntegerGreaterThan(1)
nonnegative = greater_than_eq(0.0)
real = _Real()
real_vector = independent(real, 1)
simplex = _Simplex()
square = _Square()
symmetric = _Symmetric()
unit_interval = interval(0.0, 1.0)

__getattr__ = module_getattr("torch.distributions.constraints")
