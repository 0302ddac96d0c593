# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of the functions with a code for each matrix, where all is well.

Other matrices: python_client/tests/test_linalg_codes.py.
"""

import numpy as np
import scipy.linalg.lapack
from op_cases import case
from op_cases_linalg import T, np_packed, np_solve, np_spd, regular, rng, spd

for shape in [(3, 3), (2, 2, 3, 3)]:
    x = regular(*shape)
    case("linalg.inv_ex", lambda hf, x: hf.linalg.inv_ex(x).inverse, np.linalg.inv, x)
    case(
        "linalg.lu_factor_ex", lambda hf, x: hf.linalg.lu_factor_ex(x).LU, np_packed, x
    )
    case("lu", lambda hf, x: hf.lu(x, get_infos=True)[0], np_packed, x)
    case(
        "linalg.cholesky_ex",
        lambda hf, x: hf.linalg.cholesky_ex(spd(hf, x)).L,
        lambda x: np.linalg.cholesky(np_spd(x)),
        x,
    )
for left in (True, False):
    case(
        "linalg.solve_ex",
        lambda hf, a, b, left=left: hf.linalg.solve_ex(a, b, left=left).result,
        lambda a, b, left=left: np_solve(a, b) if left else T(np_solve(T(a), T(b))),
        regular(2, 3, 3),
        (3, 2) if left else (4, 3),
        label=f" left={left}",
    )


# ---- symmetric matrices that need not be positive definite


def mirrored(a):
    return np.tril(a) + np.tril(a, -1).swapaxes(-1, -2)


def ldl(a, part):
    """LAPACK's factors, matrix by matrix."""
    rows = [
        scipy.linalg.lapack.dsytrf(m, lower=1)[part]
        for m in a.reshape(-1, *a.shape[-2:])
    ]
    shape = a.shape if part == 0 else a.shape[:-1] if part == 1 else a.shape[:-2]
    return np.reshape([np.tril(r) if part == 0 else r for r in rows], shape)


# Without a diagonal, pivots are pairs.
hollow = rng.uniform(-1, 1, (2, 6, 6)) * (1 - np.eye(6))
for label, matrix in [
    ("", rng.uniform(-1, 1, (7, 7))),
    (" batch", rng.uniform(-1, 1, (2, 2, 5, 5))),
    (" hollow", hollow),
    (" zero", np.zeros((3, 3))),
    (" one", np.array([[-2.0]])),
]:
    for part in range(3):
        case(
            "linalg.ldl_factor_ex",
            lambda hf, a, p=part: hf.linalg.ldl_factor_ex(a)[p],
            lambda a, p=part: ldl(a, p),
            matrix,
            grad=(),
            label=f"{label} {('LD', 'pivots', 'info')[part]}",
        )
case(
    "linalg.ldl_factor",
    lambda hf, a: hf.linalg.ldl_factor(a)[0],
    lambda a: ldl(a, 0),
    (4, 4),
    grad=(),
)
for label, matrix, right in [
    ("", rng.uniform(-1, 1, (6, 6)), (6, 2)),
    (" hollow", hollow, (2, 6, 3)),
    (" broadcast", rng.uniform(-1, 1, (5, 5)), (3, 5, 1)),
    (" empty", np.zeros((2, 0, 0)), (0, 3)),
]:
    case(
        "linalg.ldl_solve",
        lambda hf, a, b: hf.linalg.ldl_solve(*hf.linalg.ldl_factor(a), b),
        lambda a, b: np.linalg.inv(mirrored(a)) @ b,
        matrix,
        right,
        grad=(1,),
        label=label,
    )
