# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of products: einsum and its kin, distances, covariance."""

import numpy as np
import scipy.linalg
import scipy.spatial.distance
from op_cases import case, ints


def np_cross_t(a, b):
    return np.cross(a.T, b)


# ---- products

case("mm", lambda hf, a, b: hf.mm(a, b), np.matmul, (3, 4), (4, 2))
case("bmm", lambda hf, a, b: a.bmm(b), np.matmul, (2, 3, 4), (2, 4, 2))
case("mv", lambda hf, a, b: a.mv(b), np.matmul, (3, 4), (4,))
case("dot", lambda hf, a, b: a.dot(b), np.dot, (4,), (4,))
case("dot", lambda hf, a, b: a.dot(b), np.dot, (0,), (0,), label=" empty")
case("vdot", lambda hf, a, b: hf.vdot(a, b), np.vdot, (4,), (4,))
case("outer", lambda hf, a, b: hf.outer(a, b), np.outer, (3,), (4,))
case("inner", lambda hf, a, b: hf.inner(a, b), np.inner, (2, 3, 4), (5, 4))
case("inner", lambda hf, a, b: hf.inner(a, b), np.inner, (4,), (4,))
case("inner", lambda hf, a, b: hf.inner(a, b), np.inner, (), (3, 4))
for name, first, second, product in [
    ("addmm", (3, 4), (4, 2), lambda a, b: a @ b),
    ("addmv", (3, 4), (4,), lambda a, b: a @ b),
    ("addr", (3,), (4,), np.outer),
    ("baddbmm", (2, 3, 4), (2, 4, 2), lambda a, b: a @ b),
    ("addbmm", (2, 3, 4), (2, 4, 5), lambda a, b: (a @ b).sum(0)),
]:
    out = product(np.zeros(first), np.zeros(second)).shape
    case(
        name,
        lambda hf, c, a, b, f=name: getattr(hf, f)(c, a, b, beta=0.5, alpha=2),
        lambda c, a, b, f=product: 0.5 * c + 2 * f(a, b),
        out,
        first,
        second,
    )
    case(
        name,
        lambda hf, c, a, b, f=name: getattr(hf, f)(c, a, b),
        lambda c, a, b, f=product: c + f(a, b),
        out[-1:],
        first,
        second,
        label=" broadcast",
    )
case(
    "linalg.vecdot",
    lambda hf, a, b: hf.linalg.vecdot(a, b, dim=1),
    lambda a, b: (a * b).sum(1),
    (2, 3, 4),
    (2, 3, 4),
)
for dims in (0, 1, 2, ([2, 0], [0, 2]), ([-1], [0])):
    a = (2, 3, 4)
    b = {0: (5,), 1: (4, 5), 2: (3, 4, 5)}.get(
        dims if isinstance(dims, int) else len(dims[0]) + 1
    )
    b = (4, 5, 2) if dims == ([2, 0], [0, 2]) else (4, 3) if dims == ([-1], [0]) else b
    case(
        "tensordot",
        lambda hf, a, b, d=dims: hf.tensordot(a, b, d),
        lambda a, b, d=dims: np.tensordot(a, b, d),
        a,
        b,
        label=f" dims={dims}",
    )
for a, b in [((2, 3), (4, 2)), ((2,), (3, 2)), ((2, 2, 3), (3,)), ((), (3,))]:
    case("kron", lambda hf, a, b: hf.kron(a, b), np.kron, a, b)
case("cross", lambda hf, a, b: hf.cross(a, b), np.cross, (2, 3), (2, 3))
case("linalg_cross", lambda hf, a, b: a.t().cross(b), np_cross_t, (3, 2), (2, 3))
case("cross", lambda hf, a, b: a.cross(b), np.cross, ints((2, 3)), ints((2, 3), seed=8))
case("cross", lambda hf, a, b: a.cross(b, 1), np.cross, (0, 3), (0, 3), label=" empty")
case(
    "cross",
    lambda hf, a, b: a.cross(b, dim=0),
    lambda a, b: np.cross(a, b, axis=0),
    (3, 4),
    (3, 4),
)
case(
    "linalg.cross",
    lambda hf, a, b: hf.linalg.cross(a, b),
    np.cross,
    (1, 4, 3),
    (2, 1, 3),
    label=" broadcast",
)
for shape in [(3, 3), (2, 4), (4, 2), (1, 1), (0, 3), (3, 0)]:
    case("trace", lambda hf, a: hf.trace(a), np.trace, shape)
case("trace", lambda hf, a: a.t().trace(), np.trace, (3, 4), label=" strided")
case("trace", lambda hf, a: a.trace(), np.trace, ints((3, 3)), label=" int", grad=())
case(
    "block_diag",
    lambda hf, a, b, c, d: hf.block_diag(a, b, c, d),
    lambda *x: scipy.linalg.block_diag(*x),
    (2, 3),
    (2,),
    (),
    (3, 1),
)
case(
    "linalg.multi_dot",
    lambda hf, a, b, c, d: hf.linalg.multi_dot([a, b, c, d]),
    lambda *x: np.linalg.multi_dot(x),
    (4,),
    (4, 2),
    (2, 5),
    (5,),
)
case(
    "chain_matmul",
    lambda hf, a, b, c: hf.chain_matmul(a, b, c),
    lambda *x: np.linalg.multi_dot(x),
    (4, 2),
    (2, 5),
    (5, 3),
)

# ---- einsum

for equation, *shapes in [
    ("i->", (4,)),
    ("ij->ji", (3, 4)),
    ("ij->j", (3, 4)),
    ("ij", (3, 4)),
    ("ba", (3, 4)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iji->j", (3, 4, 3)),
    ("iii->i", (3, 3, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("...ij->...ji", (2, 3, 4)),
    ("i,i->", (4,), (4,)),
    ("i,i->i", (4,), (4,)),
    ("i,j->ij", (3,), (4,)),
    ("ij,jk", (3, 4), (4, 2)),
    ("ij,jk->ki", (3, 4), (4, 2)),
    ("ij,kj->ik", (3, 4), (5, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bkj->bk", (2, 3, 4), (2, 5, 4)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk", (2, 1, 3, 4), (5, 4, 2)),
    ("i...,i...->...", (3, 2, 4), (3, 4)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ijk,jil->kl", (3, 2, 4), (2, 3, 5)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
    ("ij,j,i->", (3, 4), (4,), (3,)),
    ("bn,anm,bm->ba", (2, 3), (5, 3, 4), (2, 4)),
    ("i,j,k,l->ijkl", (2,), (3,), (2,), (3,)),
    ("ab,cd->", (2, 3), (4, 2)),
    ("ij,jj->i", (3, 4), (4, 4)),
    (",i->i", (), (3,)),
    ("ij,jk->ik", (0, 4), (4, 2)),
    ("ij,jk->ik", (3, 0), (0, 2)),
]:
    case(
        "einsum",
        lambda hf, *x, e=equation: hf.einsum(e, *x),
        lambda *x, e=equation: np.einsum(e, *x),
        *shapes,
        label=f" {equation}",
    )
case(
    "einsum",
    lambda hf, a, b: hf.einsum(a, [0, 1], b, [1, 2], [2, 0]),
    lambda a, b: (a @ b).T,
    (3, 4),
    (4, 2),
    label=" sublists",
)
case(
    "einsum",
    lambda hf, a, b: hf.einsum("ij,ij->i", [a, b]),
    lambda a, b: (a * b).sum(1),
    (3, 1),
    (3, 4),
    label=" size 1",
)
case(
    "einsum",
    lambda hf, a, b: hf.einsum("ij,jk->ik", a.t(), b[::2]),
    lambda a, b: a.T @ b[::2],
    (4, 3),
    (8, 2),
    label=" strided",
)
case(
    "einsum",
    lambda hf, a, b: hf.einsum("ij,jk->ik", a, b),
    np.matmul,
    ints((3, 4)),
    ints((4, 2), seed=4),
    label=" int",
    grad=(),
)

# ---- distances

for p, metric in [
    (2, "euclidean"),
    (1, "cityblock"),
    (np.inf, "chebyshev"),
    (3, "minkowski"),
    (0.5, "minkowski"),
]:
    extra = {"p": p} if metric == "minkowski" else {}
    case(
        "linalg_cdist",
        lambda hf, a, b, p=p: hf.cdist(a, b, p),
        lambda a, b, m=metric, e=extra: scipy.spatial.distance.cdist(a, b, m, **e),
        (3, 4),
        (5, 4),
        label=f" p={p}",
    )
case(
    "cdist",
    lambda hf, a, b: hf.cdist(a, b),
    lambda a, b: np.sqrt(((a[:, :, None] - b[None, None]) ** 2).sum(-1)),
    (2, 3, 4),
    (5, 4),
    label=" batch",
)
case(
    "cdist",
    lambda hf, a, b: hf.cdist(a, b),
    scipy.spatial.distance.cdist,
    (30, 4),
    (2, 4),
    label=" product",
)
case(
    "cdist",
    lambda hf, a, b: hf.cdist(a, b, 0),
    lambda a, b: (a[:, None] != b[None]).sum(-1) * 1.0,
    (3, 4),
    (5, 4),
    label=" p=0",
    grad=(),
)

# ---- covariance

case("cov", lambda hf, x: hf.cov(x), np.cov, (3, 5))
case("cov", lambda hf, x: hf.cov(x), np.cov, (5,))
case("cov", lambda hf, x: x.cov(correction=0), lambda x: np.cov(x, ddof=0), (3, 5))
case(
    "cov",
    lambda hf, x, f: hf.cov(x, fweights=f),
    lambda x, f: np.cov(x, fweights=f),
    (3, 4),
    np.array([1, 2, 1, 3]),
)
case(
    "cov",
    lambda hf, x, f, a: hf.cov(x, fweights=f, aweights=a),
    lambda x, f, a: np.cov(x, fweights=f, aweights=a),
    (3, 4),
    np.array([1, 2, 1, 3]),
    np.array([0.5, 1.0, 2.0, 0.3]),
    label=" weighted",
)
case("corrcoef", lambda hf, x: hf.corrcoef(x), np.corrcoef, (3, 5))
