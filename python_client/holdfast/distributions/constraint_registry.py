# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Transforms from all real numbers to the sets that constraints name."""

import numbers

from holdfast.distributions import constraints, transforms

__all__ = ["biject_to", "ConstraintRegistry", "transform_to"]


class ConstraintRegistry:
    """Constraint's type -> function that makes a transform whose results satisfy a
    constraint of it. Calling the registry looks one up."""

    def __init__(self):
        self._makers = {}

    def register(self, constraint, factory=None):
        """Registers factory(constraint) for a class of constraints, or the class of
        an instance; without factory, a decorator. TypeError for anything else."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(
            constraint, constraints.Constraint
        ):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint!r}."
            )
        self._makers[constraint] = factory
        return factory

    def __call__(self, constraint):
        """The transform; NotImplementedError for a type without one."""
        maker = self._makers.get(type(constraint))
        if maker is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints; register() "
                "a function that makes a transform for them."
            )
        return maker(constraint)


# One to one, with log_abs_det_jacobian(): for densities, as of Monte Carlo steps.
biject_to = ConstraintRegistry()
# Perhaps not one to one, and simpler: for optimising parameters.
transform_to = ConstraintRegistry()


def _register(*kinds):
    """Decorator: the same function in both registries."""

    def register(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_register(constraints.real)
def _to_real(constraint):
    return transforms.identity_transform


for _registry in (biject_to, transform_to):

    @_registry.register(constraints.independent)
    def _to_independent(constraint, _registry=_registry):
        return transforms.IndependentTransform(
            _registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        )


@_register(constraints.greater_than, constraints.greater_than_eq)
def _to_above(constraint):
    affine = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_register(constraints.less_than)
def _to_below(constraint):
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_register(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, numbers.Number) and low == 0 and high == 1:
        return sigmoid
    affine = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([sigmoid, affine])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint):
    return transforms.SoftmaxTransform()


@_register(constraints.corr_cholesky)
def _to_corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


for _registry in (biject_to, transform_to):

    @_registry.register(constraints.cat)
    def _to_cat(constraint, _registry=_registry):
        parts = [_registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @_registry.register(constraints.stack)
    def _to_stack(constraint, _registry=_registry):
        parts = [_registry(c) for c in constraint.cseq]
        return transforms.StackTransform(parts, constraint.dim)


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()
