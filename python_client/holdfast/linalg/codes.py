# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The functions that tell by a code for each matrix, `info`, what went wrong.

0 stands for success. A failed matrix's result holds no number to rely on (NaN or
infinity where something was divided by 0), where the functions without `_ex` fail
as a whole.
"""

import re

from holdfast import _C
from holdfast._registry import accepts_out, both
from holdfast.errors import LinAlgError
from holdfast.return_types import named_result

from .determinant import diagonal_of
from .factor import cholesky, identity_like, lu_factor, lu_solve
from .solve import is_vector

_ops = _C.ops

_inv_result = named_result("linalg_inv_ex", ["inverse", "info"])
_cholesky_result = named_result("linalg_cholesky_ex", ["L", "info"])
_lu_factor_result = named_result("linalg_lu_factor_ex", ["LU", "pivots", "info"])
_lu_result = named_result("_lu_with_info", ["LU", "pivots", "info"])
_solve_result = named_result("linalg_solve_ex", ["result", "info"])


def _no_failure(A):
    return _ops.full(tuple(A.shape[:-2]), 0, dtype=_C.int32, device=A.device)


def _first_zero(LU):
    """Which element of U's diagonal, counted from 1, is the first 0; 0 if none is."""
    zero = _ops.eq(diagonal_of(LU.detach()), 0)
    if zero.size(-1) == 0:
        return _no_failure(LU)
    first = _ops.argmax(_ops.to(zero, _C.int32), -1) + 1
    return _ops.to(_ops.where(_ops.any(zero, -1), first, 0), _C.int32)


def _check(name, info, message):
    """LinAlgError for the first matrix whose code is not 0; waits for the codes."""
    codes = info.reshape(-1).tolist()
    for i, code in enumerate(codes):
        if code != 0:
            which = f"(Batch element {i}): " if info.dim() else ""
            raise LinAlgError(f"linalg.{name}: {which}{message.format(code=code)}")


def _check_square(name, A):
    if A.dim() < 2:
        raise RuntimeError(
            f"linalg.{name}: The input tensor A must have at least 2 dimensions."
        )
    if A.size(-2) != A.size(-1):
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are "
            f"{A.size(-2)} by {A.size(-1)} matrices"
        )


@accepts_out
def inv_ex(A, *, check_errors=False):
    """(inverse, info); a singular matrix's info is the first 0 on its LU's diagonal."""
    _check_square("inv", A)
    LU, pivots = lu_factor(A)
    info = _first_zero(LU)
    if check_errors:
        _check(
            "inv_ex",
            info,
            "The diagonal element {code} is zero, the inversion could not be completed "
            "because the input matrix is singular.",
        )
    inverse = lu_solve(LU, pivots, identity_like(A, A.size(-1)))
    return _inv_result(_C.show_as(inverse, "LinalgInvExBackward0", A), info)


@accepts_out
def solve_ex(A, B, *, left=True, check_errors=False):
    """(X of A X = B, info); info as inv_ex()'s."""
    _check_square("solve", A)
    LU, pivots = lu_factor(A)
    info = _first_zero(LU)
    if check_errors:
        _check(
            "solve_ex",
            info,
            "The diagonal element {code} is zero, the solver failed because the input "
            "matrix is singular.",
        )
    if not is_vector(A, B):
        return _solve_result(lu_solve(LU, pivots, B, left=left), info)
    if left:
        column = lu_solve(LU, pivots, _ops.unsqueeze(B, -1))
        return _solve_result(_ops.squeeze(column, -1), info)
    row = lu_solve(LU, pivots, _ops.unsqueeze(B, -2), left=False)
    return _solve_result(_ops.squeeze(row, -2), info)


@accepts_out
def lu_factor_ex(A, *, pivot=True, check_errors=False):
    """(LU, pivots, info): lu_factor(); info is the first 0 on U's diagonal."""
    LU, pivots = lu_factor(A, pivot=pivot)
    info = _first_zero(LU)
    if check_errors:
        _check(
            "lu_factor_ex",
            info,
            "U[{code},{code}] is zero: lu_solve would divide by it.",
        )
    return _lu_factor_result(LU, pivots, info)


def _first_failure(L):
    """(place in the batch, order of the leading minor) of the first matrix whose
    Cholesky factor L is not there, or None. Waits."""
    try:
        _ops.slice(L.detach().reshape(-1), 0, 0, 1).tolist()
        return None
    except LinAlgError as error:
        order = re.search(r"minor of order (\d+)", str(error))
        if order is None:
            raise
        place = re.search(r"Batch element (\d+)", str(error))
        return int(place.group(1)) if place else 0, int(order.group(1))


def _minors_that_fail(matrices, failure):
    """Of each of a batch of matrices the order of the first leading minor that is not
    positive, 0 if all are; `failure` is the first."""
    orders, start = [0] * matrices.size(0), 0
    while failure is not None:
        place, order = failure
        orders[start + place] = order
        start += place + 1
        if start == len(orders):
            break
        rest = _ops.slice(matrices, 0, start)
        failure = _first_failure(_ops.linalg_cholesky(rest))
    return orders


@accepts_out
def cholesky_ex(A, *, upper=False, check_errors=False):
    """(L, info): cholesky(); where A is not positive-definite L is NaN, and info is
    the order of the first leading minor that is not positive. Waits for the factors."""
    L = cholesky(A, upper=upper)
    failure = _first_failure(L)
    if failure is None:
        return _cholesky_result(L, _no_failure(A))
    n = A.size(-1)
    orders = _minors_that_fail(A.detach().reshape(-1, n, n), failure)
    info = _C.tensor(orders, dtype=_C.int32, device=A.device)
    info = info.reshape(tuple(A.shape[:-2]))
    if check_errors:
        _check(
            "cholesky_ex",
            info,
            "The factorization could not be completed because the input is not "
            "positive-definite (the leading minor of order {code} is not "
            "positive-definite).",
        )
    failed = _ops.ne(info, 0)[..., None, None]
    # In a failed matrix's place stands one that has a factor, so that the others'
    # gradients are theirs.
    L = cholesky(_ops.where(failed, identity_like(A, n), A), upper=upper)
    return _cholesky_result(_ops.where(failed, float("nan"), L), info)


@both(names=("lu",), out=True)
def _lu(A, pivot=True, get_infos=False):
    """lu_factor() by its old name; (LU, pivots, info) with get_infos."""
    if get_infos:
        return _lu_result(*lu_factor_ex(A, pivot=pivot))
    return tuple(lu_factor(A, pivot=pivot))
