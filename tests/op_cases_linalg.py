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
                (3, 2) if left else (4, 3),
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
                (3, 2) if left else (4, 3),
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
    grad=(),
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
