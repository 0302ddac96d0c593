# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Quantiles, and limiting the norms of parts."""

import math

from holdfast import _C
from holdfast._registry import both, inplace_of
from holdfast.reductions import norm
from holdfast.shapes import _wrap, movedim

_ops = _C.ops
Tensor = _C.Tensor

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name, input, q, interpolation):
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _between(low, high, weight):
    """low + weight * (high - low), exact at both ends."""
    step = high - low
    return _ops.where(weight < 0.5, low + step * weight, high - step * (1 - weight))


def _at_rank(ordered, rank, interpolation):
    """Values of sorted rows at fractional positions, [..., n] and [..., q]."""
    if interpolation == "lower":
        rank = _ops.floor(rank)
    elif interpolation == "higher":
        rank = _ops.ceil(rank)
    elif interpolation == "nearest":
        rank = _ops.round(rank)
    below = _ops.floor(rank)
    low = _ops.gather(ordered, -1, _ops.to(below, _C.int64))
    if interpolation not in ("linear", "midpoint"):
        return low
    high = _ops.gather(ordered, -1, _ops.to(_ops.ceil(rank), _C.int64))
    if interpolation == "midpoint":
        return low + (high - low) * 0.5
    return _between(low, high, rank - below)


def _quantile(name, input, q, dim, keepdim, interpolation, ignore_nan):
    _check_quantile(name, input, q, interpolation)
    shape = tuple(input.shape)
    if dim is None or not shape:
        rows = input.reshape(-1)
        kept = (1,) * len(shape)
    else:
        dim = _wrap(dim, len(shape))
        rows = movedim(input, dim, -1)
        kept = shape[:dim] + (1,) + shape[dim + 1 :]
    several = isinstance(q, Tensor) and q.dim() == 1
    n = rows.size(-1)
    ordered = _ops.sort(rows, -1)[0]
    nan = _ops.isnan(ordered.detach())
    if not isinstance(q, Tensor):
        q = _ops.full((1,), q, dtype=input.dtype)
    q = q.reshape(-1)
    if ignore_nan:
        count = n - _ops.sum(nan, -1, True)
        rank = _ops.clamp(q * (_ops.to(count, input.dtype) - 1), min=0)
    else:
        # NaN are at the end: where there is one, everything is.
        rank = _ops.where(_ops.slice(nan, -1, n - 1), float(n - 1), q * (n - 1))
    result = _at_rank(ordered, rank, interpolation)
    # [..., q] to [q, ...]; without several q that dimension goes.
    result = movedim(result, -1, 0)
    if not keepdim:
        return result if several else _ops.squeeze(result, 0)
    return result.reshape((q.numel(), *kept) if several else kept)


@both(out=True)
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-quantiles along dim (of all if None): q a number or a 1-D tensor, whose
    dimension comes first in the result. NaN where there is one."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@both(out=True)
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """quantile() of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


@both(out=True)
def renorm(input, p, dim, maxnorm):
    """input with every part along dim scaled down to a p-norm of maxnorm where it
    is larger."""
    if input.dim() < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions"
        )
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0 or math.isnan(maxnorm):
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = _wrap(dim, input.dim())
    others = [d for d in range(input.dim()) if d != dim]
    size = norm(input, p, others, True)
    return input * _ops.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


inplace_of(renorm)
