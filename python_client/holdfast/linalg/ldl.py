# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Factors of symmetric matrices that need not be positive definite.

Bunch and Kaufman's method (1977) as LAPACK's sytf2 has it, column by column for all
matrices of a batch at once: which pivot is chosen is a mask, so that nobody waits.
"""

import math

from holdfast import _C
from holdfast._registry import accepts_out
from holdfast.return_types import named_result
from holdfast.shapes import broadcast_shapes, stack

from .codes import _check, _check_square
from .factor import identity_like

_ops = _C.ops

_ldl_result = named_result("linalg_ldl_factor", ["LD", "pivots"])
_ldl_ex_result = named_result("linalg_ldl_factor_ex", ["LD", "pivots", "info"])

# Which share of the column's largest element the pivot must have.
_SHARE = (1 + math.sqrt(17)) / 8


def _check_real(name, A):
    if A.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(
            f"linalg.{name}: expected a matrix of float32 or float64. Got {A.dtype}."
        )


def _at(rows, place):
    """rows [B, n, ...] at place [B]."""
    index = place.reshape(-1, *(1,) * (rows.dim() - 1))
    return _ops.gather(
        rows, 1, _ops.expand(index, (rows.size(0), 1, *rows.shape[2:]))
    ).squeeze(1)


def _swap(places, first, second):
    """The order [B, n] of rows in which first [B] and second [B] change places."""
    first, second = first.unsqueeze(-1), second.unsqueeze(-1)
    swapped = _ops.where(_ops.eq(places, second), first, places)
    return _ops.where(_ops.eq(places, first), second, swapped)


def _reordered(rows, order):
    """rows [B, n, ...] in the order [B, n]."""
    index = order.reshape(*order.shape, *(1,) * (rows.dim() - 2))
    return _ops.gather(rows, 1, _ops.expand(index, tuple(rows.shape)))


def _largest(values, kept):
    """The largest of |values| [B, n] where kept, 0 if none is, and its place."""
    sizes = _ops.where(kept, _ops.abs(values), -1.0)
    return _ops.clamp(_ops.amax(sizes, (-1,)), 0.0), _ops.argmax(sizes, -1)


def _pivot(S, k, places):
    """(two, place, none): whether columns k and k + 1 are eliminated together; the row
    that comes to where the last of them is; whether the column is 0."""
    own = _ops.select(S, -1, k)
    size = _ops.abs(_ops.select(own, -1, k))
    most, place = _largest(own, _ops.gt(places, k))
    row = _at(S, place)
    others = _ops.ne(places, place.unsqueeze(-1))
    most_of_row, _ = _largest(row, _ops.logical_and(_ops.ge(places, k), others))
    diagonal = _ops.abs(_at(row, place))
    none = _ops.eq(_ops.maximum(size, most), 0)
    # In products: most_of_row is 0 only where most is.
    here = _ops.ge(size, _SHARE * most)
    here = here | _ops.ge(size * most_of_row, _SHARE * most * most) | none
    two = ~here & _ops.lt(diagonal, _SHARE * most_of_row)
    return two, _ops.where(here, k, place), none


def _factor(S):
    """(LD, pivots, info) of symmetric S [B, n, n]."""
    count, n = S.shape[:2]
    places = _ops.expand(_ops.arange(0, n), (count, n)).contiguous()
    zeros = _ops.full((count, n), 0, dtype=S.dtype)
    second = _ops.full((count,), False)  # the pair's second column is done
    info = _ops.full((count,), 0)
    columns, pivots = [], []
    after = None  # the second column of a pair, as the first one's step gives it
    for k in range(n):
        two, place, none = _pivot(S, k, places)
        two, place = two & ~second, _ops.where(second, k, place)
        last = _ops.where(two, k + 1, k)
        order = _swap(places, last, place)
        S = _reordered(_reordered(S, order).mT, order).mT
        info = _ops.where(none & ~second & _ops.eq(info, 0), k + 1, info)

        own = _ops.select(S, -1, k)
        d = _ops.select(own, -1, k)
        still = (none | second).unsqueeze(-1)
        below = _ops.gt(places, k)
        one = _ops.where(still, 1.0, d.unsqueeze(-1))
        factor = _ops.where(below & ~still, own / one, 0.0)
        outer = factor.unsqueeze(-1) * _ops.where(below, own, 0.0).unsqueeze(-2)
        column = _ops.where(_ops.eq(places, k), own, factor)
        if k + 1 < n:
            pair, next_column, pair_outer = _pair(S, k, places)
            both = two.unsqueeze(-1)
            column = _ops.where(both, pair, column)
            outer = _ops.where(both.unsqueeze(-1), pair_outer, outer)
        if after is not None:
            column = _ops.where(second.unsqueeze(-1), after, column)
        after = next_column if k + 1 < n else None
        S = S - outer
        columns.append(column)
        pivots.append((two, second, place))
        second = two
    LD = stack(columns, -1) if columns else zeros.unsqueeze(-1)[:, :, :0]
    return LD, _numbers(pivots, count), _ops.to(info, _C.int32)


def _pair(S, k, places):
    """Columns k and k + 1 of LD, and what leaves the matrix, where both go at once."""
    first, other = _ops.select(S, -1, k), _ops.select(S, -1, k + 1)
    a, b = (_ops.select(first, -1, i).unsqueeze(-1) for i in (k, k + 1))
    c = _ops.select(other, -1, k + 1).unsqueeze(-1)
    # Over b, which is the largest of the three, as LAPACK has it.
    safe = _ops.where(_ops.eq(b, 0), 1.0, b)
    left, right = c / safe, a / safe
    scale = 1 / (safe * _ops.where(_ops.eq(b, 0), 1.0, left * right - 1))
    below = _ops.gt(places, k + 1)
    w1 = _ops.where(below, scale * (left * first - other), 0.0)
    w2 = _ops.where(below, scale * (right * other - first), 0.0)
    outer = w1.unsqueeze(-1) * _ops.where(below, first, 0.0).unsqueeze(-2)
    outer = outer + w2.unsqueeze(-1) * _ops.where(below, other, 0.0).unsqueeze(-2)
    at_first = _ops.eq(places, k) | _ops.eq(places, k + 1)
    pair = _ops.where(at_first, first, w1)
    return pair, _ops.where(_ops.eq(places, k + 1), c, w2), outer


def _numbers(pivots, count):
    """LAPACK's int32 pivots: counted from 1, below 0 for both columns of a pair."""
    numbers, before = [], None
    for two, second, place in pivots:
        number = _ops.where(two, -place - 1, place + 1)
        numbers.append(number if before is None else _ops.where(second, before, number))
        before = numbers[-1]
    if not numbers:
        return _ops.full((count, 0), 0, dtype=_C.int32)
    return _ops.to(stack(numbers, -1), _C.int32)


@accepts_out
def ldl_factor_ex(A, *, hermitian=False, check_errors=False):
    """(LD, pivots, info) of symmetric A [..., n, n], as LAPACK's sytrf with 'L': D's
    blocks of one or two on the diagonal of LD, L below them, int32 pivots [..., n].

    float32 or float64; only the lower triangle is read, and there is no gradient. info
    (int32) is the first diagonal element of D that is 0, counted from 1, else 0;
    check_errors: LinAlgError for it, which waits. hermitian is for complex numbers.
    """
    _check_square("ldl_factor_ex", A)
    _check_real("ldl_factor_ex", A)
    batch, n = tuple(A.shape[:-2]), A.size(-1)
    lower = _ops.tril(A.detach())
    S = (lower + _ops.tril(lower, -1).mT).reshape(math.prod(batch), n, n)
    LD, pivots, info = _factor(S)
    info = info.reshape(batch)
    if check_errors:
        _check("ldl_factor_ex", info, _SINGULAR)
    return _ldl_ex_result(LD.reshape(A.shape), pivots.reshape(*batch, n), info)


_SINGULAR = "The factor D is exactly singular: its diagonal element {code} is zero."


@accepts_out
def ldl_factor(A, *, hermitian=False):
    """(LD, pivots) as ldl_factor_ex() has them; LinAlgError where D is singular."""
    LD, pivots, info = ldl_factor_ex(A, hermitian=hermitian)
    _check("ldl_factor", info, _SINGULAR)
    return _ldl_result(LD, pivots)


def _in_plain_order(L, pivots):
    """(L, order, pairs): with P A P^T = L D L^T for the order of rows P; pairs [B, n]
    is True at the first column of each block of two."""
    count, n = L.shape[:2]
    places = _ops.expand(_ops.arange(0, n), (count, n)).contiguous()
    order, second, pairs = places, _ops.full((count,), False), []
    for k in range(n):
        number = _ops.to(_ops.select(pivots, -1, k), _C.int64)
        two = _ops.lt(number, 0) & ~second
        last = _ops.where(two, k + 1, k)
        place = _ops.where(second, k, _ops.abs(number) - 1)
        turn = _swap(places, last, place)
        order = _ops.gather(order, 1, turn)
        # Earlier columns follow the exchange; LAPACK leaves them as they were.
        earlier = _ops.lt(places, k).unsqueeze(-2)
        L = _ops.where(earlier, _reordered(L, turn), L)
        pairs.append(two)
        second = two
    return L, order, stack(pairs, -1)


@accepts_out
def ldl_solve(LD, pivots, B, *, hermitian=False):
    """X of A X = B, given ldl_factor(A) as LD [..., n, n] and pivots [..., n].

    B [..., n, k], whose batch broadcasts with LD's; differentiable with respect to B.
    """
    _check_square("ldl_solve", LD)
    _check_real("ldl_solve", LD)
    n = LD.size(-1)
    if B.dim() < 2 or B.size(-2) != n or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            "linalg.ldl_solve: LD must be [..., n, n], pivots [..., n], B [..., n, k]. "
            f"Got {list(LD.shape)}, {list(pivots.shape)} and {list(B.shape)}."
        )
    batch = tuple(LD.shape[:-2])
    if n == 0 or 0 in batch:
        shape = (*broadcast_shapes(batch, tuple(B.shape[:-2])), *B.shape[-2:])
        return _ops.clone(_ops.expand(B, shape))
    flat = LD.detach().reshape(-1, n, n)
    strict = _ops.tril(flat, -1)
    L, order, pairs = _in_plain_order(strict, pivots.reshape(-1, n))
    diagonal = flat.diagonal(0, -2, -1).diag_embed()
    between = _ops.where(pairs[:, : n - 1], flat.diagonal(-1, -2, -1), 0.0)
    between = between.diag_embed(-1) if n > 1 else 0.0 * diagonal
    D = diagonal + between + between.mT
    L = _ops.where(_ops.ne(between, 0), 0.0, L)
    turn = _reordered(identity_like(flat, n).expand(*flat.shape).contiguous(), order)
    L, D, turn = (x.reshape(*batch, n, n) for x in (L, D, turn))
    half = _ops.linalg_solve_triangular(L, turn @ B, False, unitriangular=True)
    half = _ops.linalg_solve(D, half)
    return turn.mT @ _ops.linalg_solve_triangular(L.mT, half, True, unitriangular=True)
