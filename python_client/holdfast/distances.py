# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distances between the rows of two matrices."""

from holdfast import _C
from holdfast._registry import function
from holdfast.dtypes import get_default_dtype
from holdfast.reductions import _safe_root

_ops = _C.ops

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def _floats(x):
    """Integers as numbers of the default type."""
    if x.is_floating_point() or x.is_complex():
        return x
    return _ops.to(x, get_default_dtype())


def _by_product(x1, x2):
    """|a - b|^2 = |a|^2 + |b|^2 - 2 a b; fast, and inexact for close rows."""
    squares1 = _ops.sum(x1 * x1, -1, True)
    squares2 = _ops.sum(x2 * x2, -1, True)
    total = squares1 + squares2.mT - 2 * _ops.matmul(x1, x2.mT)
    return _safe_root(_ops.clamp(total, min=0))


@function
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norms [.., n, m] of the differences of x1's rows [.., n, d] and x2's
    [.., m, d]. Large Euclidean cases go through a matrix product."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    x1, x2 = _floats(x1), _floats(x2)
    if x1.dim() < 2 or x2.dim() < 2:
        return _ops.linalg_cdist(x1, x2, float(p))  # an error
    large = x1.size(-2) > 25 or x2.size(-2) > 25
    if p == 2 and compute_mode != _MODES[2] and (large or compute_mode == _MODES[1]):
        return _by_product(x1, x2)
    return _ops.linalg_cdist(x1, x2, float(p))


@function
def pdist(input, p=2.0):
    """p-norms [n (n - 1) / 2] of the differences of each two rows of input [n, d]:
    the upper triangle of cdist(input, input), row by row."""
    if input.dim() != 2:
        raise RuntimeError(
            f"pdist only supports 2D tensors, got: {input.dim()}D of size "
            f"{list(input.shape)}"
        )
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values. Got p={p}.")
    n, input = input.size(0), _floats(input)
    if n < 2:
        return input.reshape(-1)[:0]
    from holdfast import triu_indices

    rows, columns = triu_indices(n, n, 1).unbind(0)
    return _ops.linalg_cdist(input, input, float(p))[rows, columns]
