# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of determinants, powers of matrices and norms."""

import numpy as np
import scipy.linalg
from op_cases import case
from op_cases_linalg import low_rank, rng, regular, spd, np_spd

# ---- determinants

for shape in [(3, 3), (2, 4, 4), (1, 1), (2, 2, 2, 2)]:
    x = rng.uniform(-2, 2, shape)
    case("det", lambda hf, a: hf.det(a), np.linalg.det, x)
    case("linalg.det", lambda hf, a: hf.linalg.det(a.mT), np.linalg.det, x)
    case("slogdet", lambda hf, a: a.slogdet()[1], lambda a: np.linalg.slogdet(a)[1], x)
    case(
        "linalg.slogdet",
        lambda hf, a: hf.linalg.slogdet(a)[0],
        lambda a: np.linalg.slogdet(a)[0],
        x,
        grad=(),
    )
case("det", lambda hf, a: hf.det(a), np.linalg.det, (0, 0), grad=())
case("det", lambda hf, a: hf.det(a), np.linalg.det, np.ones((3, 3)), grad=())
case(
    "logdet",
    lambda hf, a: hf.logdet(spd(hf, a)),
    lambda a: np.log(np.linalg.det(np_spd(a))),
    (2, 3, 3),
)

# ---- products of reflections


def np_reflections(a, tau):
    """The first columns of H_1 ... H_k, one by one."""
    m, k = a.shape[-2:]
    result = np.broadcast_to(np.eye(m), (*a.shape[:-2], m, m))
    for i in range(k):
        v = np.tril(a, -1)[..., i] + np.eye(m)[i]
        outer = v[..., :, None] * v[..., None, :]
        result = result @ (np.eye(m) - tau[..., i, None, None] * outer)
    return result[..., :k]


for shape in [(3, 3), (2, 5, 3), (4, 1)]:
    x, tau = rng.uniform(-1, 1, shape), rng.uniform(0.5, 1.5, (*shape[:-2], shape[-1]))
    case(
        "linalg.householder_product",
        lambda hf, a, t: hf.linalg.householder_product(a, t),
        np_reflections,
        x,
        tau,
    )
    case(
        "linalg.householder_product",
        lambda hf, a, t: hf.linalg.householder_product(a, t),
        np_reflections,
        x,
        tau * (np.arange(shape[-1]) != 1),
        grad=(0,),
        label=" an idle one",
    )
case("orgqr", lambda hf, a, t: hf.orgqr(a, t), np_reflections, (4, 2), (2,))
case(
    "linalg.householder_product",
    lambda hf, a, t: hf.linalg.householder_product(a, t),
    lambda a, t: np_reflections(np.eye(5)[:, :0] if t.size == 0 else a, t),
    rng.uniform(-1, 1, (5, 3)),
    rng.uniform(0.5, 1.5, 3),
)
for left in (True, False):
    for transpose in (True, False):
        c = rng.uniform(-1, 1, (4, 3) if left else (3, 4))

        def product(a, t, c, left=left, transpose=transpose):
            wide = np.concatenate([a, np.zeros((4, 2))], 1)
            q = np_reflections(wide, np.concatenate([t, np.zeros(2)]))
            q = q.T if transpose else q
            return q @ c if left else c @ q

        case(
            "ormqr",
            lambda hf, a, t, c, left=left, transpose=transpose: hf.ormqr(
                a, t, c, left, transpose
            ),
            product,
            rng.uniform(-1, 1, (4, 2)),
            rng.uniform(0.5, 1.5, 2),
            c,
        )
for shape in [(4, 3), (2, 3, 5), (1, 1), (0, 2)]:
    case(
        "geqrf",
        lambda hf, a: hf.geqrf(a)[0].triu().abs(),
        lambda a: np.abs(np.linalg.qr(a, "complete")[1]),
        rng.uniform(-1, 1, shape),
        grad=(),
        label=" R",
    ) if min(shape) else None
    case(
        "geqrf",
        lambda hf, a: (
            hf.ormqr(*(f := hf.geqrf(a)), f[0].triu()) if min(a.shape) else hf.clone(a)
        ),
        lambda a: a,
        rng.uniform(-1, 1, shape),
        grad=(),
        label=" product",
    )

# ---- powers

for scale in (0.001, 0.02, 0.1, 0.4, 1.0, 4.0):
    case(
        "linalg_matrix_exp",
        lambda hf, a: hf.matrix_exp(a),
        scipy.linalg.expm,
        rng.uniform(-1, 1, (3, 3)) * scale,
        label=f" {scale}",
    )
case(
    "linalg_matrix_exp",
    lambda hf, a: a.mT.matrix_exp(),
    lambda a: np.stack([scipy.linalg.expm(b.T) for b in a]),
    (2, 4, 4),
)
for n in (-3, -1, 0, 1, 2, 5):
    case(
        "linalg.matrix_power",
        lambda hf, a, n=n: hf.linalg.matrix_power(a, n),
        lambda a, n=n: np.linalg.matrix_power(a, n),
        regular(2, 3, 3),
        grad=() if n == 0 else None,
        label=f" {n}",
    )
case("vander", lambda hf, x: hf.vander(x), np.vander, (4,))
case(
    "vander",
    lambda hf, x: hf.vander(x, 3, True),
    lambda x: np.vander(x, 3, True),
    (4,),
    label=" increasing",
)
case(
    "linalg.vander",
    lambda hf, x: hf.linalg.vander(x, N=3),
    lambda x: x[..., None] ** np.arange(3),
    (2, 4),
)

# ---- norms

for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    for keepdim in (False, True):
        case(
            "linalg.matrix_norm",
            lambda hf, a, o=ord, k=keepdim: hf.linalg.matrix_norm(a, o, keepdim=k),
            lambda a, o=ord, k=keepdim: np.linalg.norm(a, o, (-2, -1), k),
            rng.uniform(-2, 2, (2, 3, 4)),
            label=f" {ord} {keepdim}",
        )
    case(
        "linalg.matrix_norm",
        lambda hf, a, o=ord: hf.linalg.matrix_norm(a, o, (2, 0)),
        lambda a, o=ord: np.linalg.norm(a, o, (2, 0)),
        rng.uniform(-2, 2, (2, 3, 4)),
        label=f" {ord} (2,0)",
    )
    case(
        "linalg.norm",
        lambda hf, a, o=ord: hf.linalg.norm(a, o),
        lambda a, o=ord: np.linalg.norm(a, o),
        rng.uniform(-2, 2, (3, 4)),
        label=f" {ord}",
    )
    case(
        "linalg.cond",
        lambda hf, a, o=ord: hf.linalg.cond(a, o),
        lambda a, o=ord: np.linalg.cond(a, o),
        regular(2, 3, 3) + 0.1,
        label=f" {ord}",
    )
for ord in (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf):
    for dim in (None, 1, (0, 2)):

        def reference(a, o=ord, d=dim):
            d = tuple(range(a.ndim)) if d is None else d
            d = (d,) if isinstance(d, int) else d
            rest = [i for i in range(a.ndim) if i not in d]
            flat = a.transpose(*rest, *d).reshape([a.shape[i] for i in rest] + [-1])
            return np.linalg.norm(flat, o, -1)

        case(
            "linalg.vector_norm",
            lambda hf, a, o=ord, d=dim: hf.linalg.vector_norm(a, o, d),
            reference,
            rng.uniform(-2, 2, (2, 3, 4)),
            grad=() if ord == 0 else None,
            label=f" {ord} {dim}",
        )
case("linalg.norm", lambda hf, a: hf.linalg.norm(a), np.linalg.norm, (2, 3, 4))
case(
    "linalg.norm",
    lambda hf, a: hf.linalg.norm(a, dim=1, keepdim=True),
    lambda a: np.linalg.norm(a, axis=1, keepdims=True),
    (2, 3, 4),
)
case(
    "linalg.matrix_rank",
    lambda hf, a: hf.linalg.matrix_rank(a, rtol=1e-3),
    lambda a: np.array([1, 3, 0]),
    np.stack([low_rank, np.eye(4, 3), np.zeros((4, 3))]),
    grad=(),
)
case(
    "linalg.matrix_rank",
    lambda hf, a: hf.linalg.matrix_rank(a, hermitian=True),
    lambda a: np.array(2),
    np.diag([1.0, -2.0, 0.0]),
    grad=(),
    label=" hermitian",
)
