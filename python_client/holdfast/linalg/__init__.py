# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.linalg: factorisations, systems, norms, of matrices and batches.

Matrices are float32 or float64, the last two dimensions; the others are a
batch. A matrix that does not allow what is asked (a singular one, say) is a
LinAlgError at the next read; functions named `_ex` return a code for each matrix.
"""

from holdfast import _C
from holdfast.errors import LinAlgError
from holdfast.missing import module_getattr
from holdfast.products import cross, multi_dot, vecdot

from .codes import cholesky_ex, inv_ex, lu_factor_ex, solve_ex
from .determinant import det, slogdet
from .factor import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    lu_factor,
    lu_solve,
    qr,
    svd,
    svdvals,
)
from .householder import householder_product
from .ldl import ldl_factor, ldl_factor_ex, ldl_solve
from .norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from .power import matrix_exp, matrix_power, vander
from .roots import matrix_sqrth, polar
from .solve import inv, lstsq, pinv, solve, solve_triangular, tensorinv, tensorsolve

matmul = _C.ops.matmul


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """View of the diagonals of matrices: Tensor.diagonal() with other defaults."""
    return A.diagonal(offset, dim1, dim2)


__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_sqrth",
    "multi_dot",
    "norm",
    "pinv",
    "polar",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

__getattr__ = module_getattr("torch.linalg")
