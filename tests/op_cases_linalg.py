# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of linear algebra; op_cases.py says what a row is.

Factorisations are unique up to signs that any LAPACK may choose its own way:
cases compare what does not depend on them (absolute values, or the product).
Functions of symmetric matrices get x x^T + c I, so that differences keep the
symmetry.
"""

import numpy as np
import scipy.linalg
from op_cases import case

rng = np.random.default_rng(29)


def regular(*shape):
    """Well-conditioned matrices."""
    n = shape[-1]
    return rng.uniform(-1, 1, shape) + 3 * np.eye(shape[-2], n)


def spd(hf, x):
    return x @ x.mT + hf.eye(x.size(-2), dtype=x.dtype)


def np_spd(x):
    return x @ x.swapaxes(-1, -2) + np.eye(x.shape[-2])


def np_solve(a, b):
    """B is never a batch of vectors, as NumPy has it for some ranks."""
    return np.linalg.inv(a) @ b


def T(x):
    return x.swapaxes(-1, -2)


# ---- Cholesky

for shape in [(3, 3), (2, 3, 4), (0, 0), (2, 1, 3, 3), (40, 40)]:
    small = shape[-1] < 10
    case(
        "linalg_cholesky",
        lambda hf, x: hf.linalg.cholesky(spd(hf, x)),
        lambda x: np.linalg.cholesky(np_spd(x)),
        shape,
        grad=None if small and 0 not in shape else (),
    )
case(
    "linalg_cholesky",
    lambda hf, x: hf.linalg.cholesky(spd(hf, x), upper=True),
    lambda x: T(np.linalg.cholesky(np_spd(x))),
    (2, 3, 3),
    label=" upper",
)
case(
    "cholesky",
    lambda hf, x: hf.cholesky(spd(hf, x).mT),
    lambda x: np.linalg.cholesky(np_spd(x)),
    (3, 3),
)
for upper in (False, True):
    triangle = np.triu if upper else np.tril
    case(
        "cholesky_solve",
        lambda hf, b, x, u=upper: hf.cholesky_solve(
            b, hf.triu(x) if u else hf.tril(x), u
        ),
        lambda b, x, u=upper: np_solve(
            T(np.triu(x)) @ np.triu(x) if u else np.tril(x) @ T(np.tril(x)), b
        ),
        (3, 2),
        regular(3, 3),
        label=f" upper={upper}",
    )
    case(
        "cholesky_inverse",
        lambda hf, x, u=upper: hf.cholesky_inverse(hf.triu(x) if u else hf.tril(x), u),
        lambda x, u=upper: np.linalg.inv(
            T(np.triu(x)) @ np.triu(x) if u else np.tril(x) @ T(np.tril(x))
        ),
        regular(2, 3, 3),
        label=f" upper={upper}",
    )

# ---- LU


def np_lu(x):
    flat = x.reshape((-1,) + x.shape[-2:])
    parts = zip(*(scipy.linalg.lu(a) for a in flat))
    return [np.stack(p).reshape(x.shape[:-2] + p[0].shape) for p in parts]


def np_packed(x):
    _, low, up = np_lu(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    out = np.zeros_like(x)
    out[..., :, :k] += np.tril(low, -1)
    out[..., :k, :] += up
    return out


for shape in [(3, 3), (2, 4, 3), (3, 5), (2, 2, 3, 3), (1, 1)]:
    x = rng.uniform(-2, 2, shape)
    case("linalg_lu_factor", lambda hf, x: hf.linalg.lu_factor(x), np_packed, x)
    case(
        "linalg.lu",
        lambda hf, x: hf.linalg.lu(x)[1] * 2 @ hf.linalg.lu(x)[2],
        lambda x: np_lu(x)[1] * 2 @ np_lu(x)[2],
        x,
    )
    case(
        "linalg.lu", lambda hf, x: hf.linalg.lu(x)[0], lambda x: np_lu(x)[0], x, grad=()
    )
case(
    "lu_unpack",
    lambda hf, x: hf.lu_unpack(*hf.linalg.lu_factor(x))[2],
    lambda x: np_lu(x)[2],
    regular(3, 4),
)
case(
    "linalg_lu_factor",
    lambda hf, x: hf.linalg.lu_factor(x.mT[:, ::2]),
    lambda x: np_packed(T(x)[:, ::2]),
    rng.uniform(-2, 2, (2, 3, 6)),
    label=" strided",
)
case(
    "linalg_lu_factor",
    lambda hf, x: hf.linalg.lu_factor(x),
    np_packed,
    rng.uniform(-2, 2, (90, 90)),
    grad=(),
)
case(
    "linalg_lu_permutation",
    lambda hf, p: hf._C.ops.linalg_lu_permutation(p, 4),
    lambda p: np.array([[2, 3, 0, 1], [0, 1, 2, 3]]),
    np.array([[3, 4, 3], [1, 2, 3]], np.int32),
    grad=(),
)
for shape_a, shape_b in [((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2))]:
    for left in (True, False):
        for adjoint in (False, True):

            def reference(a, b, left=left, adjoint=adjoint):
                a = T(a) if adjoint else a
                if left:
                    return np_solve(a, b)
                return T(np_solve(T(a), T(b)))

            case(
                "linalg.lu_solve",
                lambda hf, a, b, left=left, adjoint=adjoint: hf.linalg.lu_solve(
                    *hf.linalg.lu_factor(a), b, left=left, adjoint=adjoint
                ),
                reference,
                rng.uniform(-2, 2, shape_a),
                shape_b if left else shape_b[:-2] + shape_b[:-3:-1],
                label=f" left={left} adjoint={adjoint}",
            )
case(
    "lu_solve",
    lambda hf, b, a: b.lu_solve(*a.lu()),
    lambda b, a: np_solve(a, b),
    (3, 2),
    regular(3, 3),
)

# ---- systems

for shape_a, shape_b in [
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3, 2)),
    ((3, 3), (2, 3, 1)),
    ((2, 1, 3, 3), (4, 3, 2)),
    ((1, 1), (1, 1)),
]:
    case(
        "linalg_solve",
        lambda hf, a, b: hf.linalg.solve(a, b),
        np_solve,
        regular(*shape_a),
        shape_b,
    )
    case(
        "linalg_solve",
        lambda hf, a, b: hf.linalg.solve(a.mT, b.mT[..., ::1].mT * 1),
        lambda a, b: np_solve(T(a), b),
        regular(*shape_a),
        shape_b,
        label=" strided",
    )
for shapes in [((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (0, 3, 2))]:
    case(
        "linalg_solve",
        lambda hf, a, b: hf.linalg.solve(a, b),
        np_solve,
        *map(np.zeros, shapes) if 0 in shapes[0] else (regular(3, 3), (3, 0)),
        grad=(),
        label=" empty",
    )
case(
    "linalg.solve",
    lambda hf, a, b: hf.linalg.solve(a, b),
    lambda a, b: np_solve(a, b[..., None])[..., 0],
    regular(2, 3, 3),
    (2, 3),
    label=" vectors",
)
case(
    "linalg.solve",
    lambda hf, a, b: hf.linalg.solve(a, b, left=False),
    lambda a, b: b @ np.linalg.inv(a),
    regular(3, 3),
    (2, 3),
    label=" right",
)
for upper in (False, True):
    for left in (False, True):
        for unit in (False, True):

            def reference(a, b, upper=upper, left=left, unit=unit):
                a = np.triu(a) if upper else np.tril(a)
                if unit:
                    n = a.shape[-1]
                    a = a * (1 - np.eye(n)) + np.eye(n)
                return np_solve(a, b) if left else b @ np.linalg.inv(a)

            for batch_a, batch_b in [((), ()), ((2,), ()), ((2, 1), (3,))]:
                case(
                    "linalg_solve_triangular",
                    lambda hf, a, b, u=upper, s=left, d=unit: (
                        hf.linalg.solve_triangular(
                            a, b, upper=u, left=s, unitriangular=d
                        )
                    ),
                    reference,
                    regular(*batch_a, 3, 3),
                    batch_b + ((3, 2) if left else (2, 3)),
                    label=f" upper={upper} left={left} unit={unit}",
                )
            case(
                "linalg_solve_triangular",
                lambda hf, a, b, u=upper, s=left, d=unit: (
                    hf.linalg.solve_triangular(
                        a.mT[..., ::2], b, upper=u, left=s, unitriangular=d
                    )
                ),
                lambda a, b, f=reference: f(T(a)[..., ::2], b),
                np.repeat(regular(3, 3), 2, 0),
                (3, 2) if left else (2, 3),
                label=f" strided upper={upper} left={left} unit={unit}",
            )
            case(
                "linalg_solve_triangular",
                lambda hf, a, b, u=upper, s=left, d=unit: (
                    hf.linalg.solve_triangular(
                        a.mT, b, upper=u, left=s, unitriangular=d
                    )
                ),
                lambda a, b, f=reference: f(T(a), b),
                regular(2, 3, 3),
                (3, 2) if left else (2, 3),
                label=f" transposed upper={upper} left={left} unit={unit}",
            )
case(
    "triangular_solve",
    lambda hf, b, a: hf.triangular_solve(b, a, transpose=True)[0],
    lambda b, a: np_solve(T(np.triu(a)), b),
    (3, 2),
    regular(3, 3),
)
for shape in [(3, 3), (2, 3, 3), (0, 3, 3), (0, 0)]:
    case(
        "linalg.inv",
        lambda hf, a: hf.linalg.inv(a),
        np.linalg.inv,
        regular(*shape),
        grad=() if 0 in shape else None,
    )
case("inverse", lambda hf, a: a.inverse(), np.linalg.inv, regular(2, 2))
case(
    "linalg.tensorinv",
    lambda hf, a: hf.linalg.tensorinv(a.reshape(2, 2, 4)),
    lambda a: np.linalg.tensorinv(a.reshape(2, 2, 4)),
    regular(4, 4),
)
case(
    "linalg.tensorsolve",
    lambda hf, a, b: hf.linalg.tensorsolve(a.reshape(2, 2, 4), b),
    lambda a, b: np.linalg.tensorsolve(a.reshape(2, 2, 4), b),
    regular(4, 4),
    (2, 2),
)

# ---- least squares, pseudoinverse

low_rank = np.outer([1.0, 2, -1, 0.5], [3.0, 1, -2])
for shape in [(4, 3), (3, 4), (2, 3, 3), (1, 3)]:
    x = regular(*shape)
    case("linalg_pinv", lambda hf, a: hf.linalg.pinv(a), np.linalg.pinv, x)
    case(
        "linalg.lstsq",
        lambda hf, a, b: hf.linalg.lstsq(a, b)[0],
        lambda a, b: np.linalg.pinv(a) @ b,
        x,
        shape[:-1] + (2,),
    )
    case(
        "linalg.lstsq",
        lambda hf, a, b: hf.linalg.lstsq(a, b, driver="gels")[0],
        lambda a, b: np.linalg.pinv(a) @ b,
        x,
        shape[:-1] + (2,),
        label=" gels",
    )
case(
    "linalg_pinv",
    lambda hf, a: hf.linalg.pinv(a, rtol=1e-3),
    lambda a: np.linalg.pinv(a, 1e-3),
    low_rank,
    grad=(),
    label=" low rank",
)
case("linalg_pinv", lambda hf, a: hf.linalg.pinv(a), np.linalg.pinv, (0, 3), grad=())
case("pinverse", lambda hf, a: a.pinverse(), np.linalg.pinv, regular(3, 2))
case(
    "linalg.lstsq",
    lambda hf, a, b: hf.linalg.lstsq(a, b, driver="gelsd")[1],
    lambda a, b: np.linalg.lstsq(a, b, None)[1],
    regular(5, 3),
    (5, 2),
    label=" residuals",
)
case(
    "linalg.lstsq",
    lambda hf, a, b: hf.linalg.lstsq(a, b, 1e-3)[2],
    lambda a, b: np.asarray(np.linalg.lstsq(a, b, 1e-3)[2]),
    low_rank,
    (4,),
    label=" rank",
    grad=(),
)

# ---- QR

for shape in [(3, 3), (4, 3), (2, 5, 2), (3, 5), (2, 2, 3)]:
    x = regular(*shape)
    for mode in ("reduced", "complete"):
        wide = mode == "complete" and shape[-2] > shape[-1]
        case(
            "linalg_qr",
            lambda hf, a, m=mode: abs(hf.linalg.qr(a, m)[1]),
            lambda a, m=mode: np.abs(
                np.stack([np.linalg.qr(b, m)[1] for b in a.reshape(-1, *a.shape[-2:])])
            ).reshape(a.shape[:-2] + (-1, a.shape[-1])),
            x,
            grad=() if wide else None,
            label=f" R {mode}",
        )
        case(
            "linalg_qr",
            lambda hf, a, m=mode: (
                hf.linalg.qr(a, m)[0] ** 2 @ (1 + hf.linalg.qr(a, m)[1] ** 2)
            ),
            lambda a, m=mode: np.stack(
                [
                    q**2 @ (1 + r**2)
                    for q, r in (
                        np.linalg.qr(b, m) for b in a.reshape(-1, *a.shape[-2:])
                    )
                ]
            ).reshape(a.shape),
            x,
            grad=() if wide else None,
            label=f" Q {mode}",
        )
case(
    "linalg_qr",
    lambda hf, a: hf.linalg.qr(a, "complete")[0],
    lambda a: np.eye(3),
    (3, 0),
    grad=(),
    label=" empty",
)
case(
    "qr",
    lambda hf, a: abs(a.qr()[0]),
    lambda a: np.abs(np.linalg.qr(a)[0]),
    regular(4, 2),
)

# ---- symmetric eigenvalues


def symmetric(hf, x):
    return x + x.mT


for shape in [(3, 3), (2, 4, 4), (1, 1), (2, 1, 2, 2)]:
    x = rng.uniform(-2, 2, shape)
    case(
        "linalg_eigh",
        lambda hf, x: hf.linalg.eigh(symmetric(hf, x))[0],
        lambda x: np.linalg.eigh(x + T(x))[0],
        x,
        label=" values",
    )
    case(
        "linalg_eigh",
        lambda hf, x: hf.linalg.eigh(symmetric(hf, x))[1] ** 2,
        lambda x: np.linalg.eigh(x + T(x))[1] ** 2,
        x,
        label=" vectors",
    )


def power_half(hf, x):
    w, v = hf.linalg.eigh(spd(hf, x), "U")
    return (v * w.sqrt().unsqueeze(-2)) @ v.mT


case(
    "linalg_eigh",
    power_half,
    lambda x: scipy.linalg.sqrtm(np_spd(x)).real,
    (3, 4),
    label=" root",
)
case(
    "linalg_eigvalsh",
    lambda hf, x: hf.linalg.eigvalsh(symmetric(hf, x.detach())),
    lambda x: np.linalg.eigvalsh(x + T(x)),
    (2, 5, 5),
    grad=(),
)
for uplo in ("L", "U"):
    case(
        "linalg.eigvalsh",
        lambda hf, x, u=uplo: hf.linalg.eigvalsh(x, u),
        lambda x, u=uplo: np.linalg.eigvalsh(x, u),
        rng.uniform(-2, 2, (4, 4)),
        grad=(),
        label=f" {uplo}",
    )

# ---- other eigenvalues


def in_order(w):
    """The eigenvalues' real parts, which no order of theirs changes."""
    return np.sort(w.real, -1)


for shape in [(3, 3), (2, 5, 5), (1, 1)]:
    x = rng.uniform(-2, 2, shape)
    case(
        "linalg_eig",
        lambda hf, a: hf.view_as_real(hf.linalg.eigvals(a))[..., 0].sort(-1)[0],
        lambda a: in_order(np.linalg.eigvals(a)),
        x,
        grad=(),
    )
    # A V = V diag(w), in real numbers.
    case(
        "linalg_eig",
        lambda hf, a: hf.stack(
            [
                a @ hf.view_as_real(hf.linalg.eig(a)[1])[..., i]
                - hf.view_as_real(
                    hf.linalg.eig(a)[1] * hf.linalg.eig(a)[0].unsqueeze(-2)
                )[..., i]
                for i in (0, 1)
            ]
        ),
        lambda a: np.zeros((2,) + a.shape),
        x,
        grad=(),
        label=" equation",
    )

# ---- singular values

for shape in [(3, 3), (4, 2), (2, 3, 4), (1, 3)]:
    x = rng.uniform(-2, 2, shape)
    for full in (True, False):
        for i in range(3):

            def part(usv, i=i):
                return usv[i] ** 2 if i != 1 else usv[i]

            tall, wide = shape[-2] > shape[-1], shape[-1] > shape[-2]
            case(
                "linalg_svd",
                lambda hf, a, f=full, part=part: part(hf.linalg.svd(a, f)),
                lambda a, f=full, part=part: part(np.linalg.svd(a, f)),
                x,
                grad=() if full and ((i == 0 and tall) or (i == 2 and wide)) else None,
                label=f" full={full} {'USV'[i]}",
            )


def stretched(hf, a):
    u, s, v = hf.svd(a)
    return (u * s**2) @ v.mT


def np_stretched(a):
    u, s, vh = np.linalg.svd(a, False)
    return (u * s**2) @ vh


case(
    "svd",
    stretched,
    np_stretched,
    regular(4, 3),
)
case(
    "linalg_svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.linalg.svd(a, compute_uv=False),
    (2, 3, 5),
    grad=(),
)
case(
    "linalg.svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.linalg.svd(a, compute_uv=False),
    (3, 2),
)
case(
    "linalg_svdvals",
    lambda hf, a: hf.linalg.svdvals(a),
    lambda a: np.zeros((2, 0)),
    (2, 0, 3),
    grad=(),
)

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
