# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Covariance and correlation of variables, one per row."""

from holdfast import _C
from holdfast._registry import both
from holdfast.dtypes import get_default_dtype

_ops = _C.ops


def _weights(input, fweights, aweights):
    n = input.size(1)
    total = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is None:
            continue
        if w.dim() > 1 or w.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are "
                f"observations in the input but got {w.numel()} != {n}"
            )
        total = w if total is None else total * w
    return total


def _adjoint(x):
    return (_ops.conj(x) if x.dtype.is_complex else x).t()


@both
def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of the rows' variables over the columns' observations.

    A vector is one variable. fweights counts each observation, aweights
    weighs it.
    """
    if input.dim() > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input "
            f"with {input.dim()} dimensions"
        )
    if input.dtype == _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not (x.is_floating_point() or x.dtype.is_complex):
        x = _ops.to(x, get_default_dtype())
    weights = _weights(x, fweights, aweights)
    if weights is None:
        mean = _ops.mean(x, 1, True)
        count = x.size(1)
        freedom = max(count - correction, 0)
        centred = x - mean
        product = _ops.matmul(centred, _adjoint(centred))
        result = product / freedom if freedom else product * float("nan")
    else:
        weights = _ops.to(weights, x.dtype)
        total = _ops.sum(weights)
        mean = _ops.sum(x * weights, 1, True) / total
        used = total
        if correction and aweights is not None:
            used = correction * _ops.sum(weights * _ops.to(aweights, x.dtype)) / total
            freedom = total - used
        else:
            freedom = total - correction
        centred = x - mean
        product = _ops.matmul(centred * weights, _adjoint(centred))
        if freedom.dtype.is_complex:  # of weights, which are real
            freedom = _ops.select(_ops.view_as_real(freedom), -1, 0)
        result = product / _ops.clamp(freedom, min=0)
    if result.numel() == 1:
        return result.reshape(())
    return result


@both
def corrcoef(input):
    """Correlations of the rows' variables, within [-1, 1] (both parts of complex
    ones)."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    n = c.size(0)
    variances = _ops.slice(c.reshape(-1), 0, 0, n * n, n + 1)
    if c.dtype.is_complex:
        variances = _ops.select(_ops.view_as_real(variances), -1, 0)
    deviations = _ops.sqrt(variances)
    scaled = c / _ops.unsqueeze(deviations, 1) / _ops.unsqueeze(deviations, 0)
    if c.dtype.is_complex:
        return _ops.view_as_complex(_ops.clamp(_ops.view_as_real(scaled), -1, 1))
    return _ops.clamp(scaled, -1, 1)
