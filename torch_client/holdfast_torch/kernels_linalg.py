# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Linear algebra: factors, solutions, and the codes that say whether there is one."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite, gradients

_ops = _C.ops
_linalg = hf.linalg


def _none(like):
    return hf.empty((0,), dtype=like.dtype)


def _determinant_factors(A):
    """(LU, pivots) of the matrix that the gradients of determinants take them to be of:
    the transposed one, where A is contiguous and real."""
    turned = A.is_contiguous() and not A.is_complex()
    LU, pivots = _linalg.lu_factor(A.mT if turned else A)
    return _by_columns(LU), pivots


def _by_columns(x):
    """x with its matrices column by column, as LAPACK leaves a factor."""
    return x.mT.contiguous().mT


@composite("_linalg_svd")
def _linalg_svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    if compute_uv:
        return tuple(_linalg.svd(A, full_matrices))
    return _none(A), _linalg.svdvals(A), _none(A)


@composite("_linalg_eigh")
def _linalg_eigh(A, UPLO="L", compute_v=True):
    if compute_v:
        return tuple(_linalg.eigh(A, UPLO))
    return _linalg.eigvalsh(A, UPLO), _none(A)


@composite("linalg_eig")
def linalg_eig(self):
    return tuple(_linalg.eig(self))


@composite("_linalg_eigvals")
def _linalg_eigvals(self):
    return _linalg.eigvals(self)


@composite("linalg_qr")
def linalg_qr(A, mode="reduced"):
    return tuple(_linalg.qr(A, mode))


@composite("_linalg_solve_ex")
def _linalg_solve_ex(A, B, *, left=True, check_errors=False):
    result, info = _linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    LU, pivots = _linalg.lu_factor(A)
    return result, _by_columns(LU), pivots, info


@composite("_linalg_det")
def _linalg_det(A):
    return (_linalg.det(A), *_determinant_factors(A))


@composite("_linalg_slogdet")
def _linalg_slogdet(A):
    return (*_linalg.slogdet(A), *_determinant_factors(A))


@composite("linalg_inv_ex")
def linalg_inv_ex(A, *, check_errors=False):
    return tuple(_linalg.inv_ex(A, check_errors=check_errors))


@composite("linalg_cholesky_ex")
def linalg_cholesky_ex(self, *, upper=False, check_errors=False):
    return tuple(_linalg.cholesky_ex(self, upper=upper, check_errors=check_errors))


@composite("linalg_lu_factor_ex")
def linalg_lu_factor_ex(A, *, pivot=True, check_errors=False):
    LU, pivots, info = _linalg.lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
    return _by_columns(LU), pivots, info


@composite("linalg_lu")
def linalg_lu(A, *, pivot=True):
    return tuple(_linalg.lu(A, pivot=pivot))


@composite("lu_unpack")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    return tuple(hf.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots))


@composite("linalg_lu_solve")
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    return _linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)


@composite("linalg_ldl_factor_ex")
def linalg_ldl_factor_ex(self, *, hermitian=False, check_errors=False):
    return tuple(
        _linalg.ldl_factor_ex(self, hermitian=hermitian, check_errors=check_errors)
    )


@composite("linalg_ldl_solve")
def linalg_ldl_solve(LD, pivots, B, *, hermitian=False):
    return _linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)


@composite("linalg_lstsq")
def linalg_lstsq(self, b, rcond=None, *, driver=None):
    return tuple(_linalg.lstsq(self, b, rcond, driver=driver))


@composite("linalg_solve_triangular")
def linalg_solve_triangular(self, B, *, upper, left=True, unitriangular=False):
    return _linalg.solve_triangular(
        self, B, upper=upper, left=left, unitriangular=unitriangular
    )


@composite("triangular_solve")
def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    solution = hf.triangular_solve(self, A, upper, transpose, unitriangular)[0]
    batch = tuple(solution.shape[:-2])
    return solution, A.expand(*batch, *A.shape[-2:]).clone()


@composite("_cholesky_solve_helper")
def _cholesky_solve_helper(self, A, upper):
    return hf.cholesky_solve(self, A, upper)


@composite("cholesky_inverse")
def cholesky_inverse(self, upper=False):
    return hf.cholesky_inverse(self, upper)


@composite("cholesky")
def cholesky(self, upper=False):
    return _linalg.cholesky(self, upper=upper)


@composite("linalg_householder_product")
def linalg_householder_product(input, tau):
    return _linalg.householder_product(input, tau)


@composite("geqrf")
def geqrf(self):
    return tuple(hf.geqrf(self))


@composite("ormqr")
def ormqr(self, input2, input3, left=True, transpose=False):
    if self.dim() < 2 or input3.dim() < 2:
        raise RuntimeError(
            "torch.ormqr: input and other must have at least 2 dimensions. Got "
            f"{self.dim()} and {input3.dim()}."
        )
    return hf.ormqr(self, input2, input3, left, transpose)


@composite("linalg_matrix_exp")
def linalg_matrix_exp(self):
    if self.dtype in (_C.float16, _C.bfloat16):
        wide = _linalg.matrix_exp(_ops.to(self, _C.float32))
        return _ops.to(wide, self.dtype)
    return _linalg.matrix_exp(self)


@composite("_compute_linear_combination")
def _compute_linear_combination(input, coefficients):
    flat = input.reshape(input.shape[0], -1)
    combined = coefficients.to(input.dtype) @ flat
    return combined.reshape(coefficients.shape[0], *input.shape[1:])


@composite("linalg_cross")
def linalg_cross(self, other, *, dim=-1):
    return _linalg.cross(self, other, dim=dim)


@composite("linalg_vector_norm")
def linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None):
    dim = None if not dim else tuple(dim)
    return _linalg.vector_norm(self, ord, dim, keepdim, dtype=dtype)


def _scaled_product(name):
    function = getattr(hf, name)

    @composite(name)
    def kernel(self, left, right, *, beta=1, alpha=1):
        if not (self.is_floating_point() or self.is_complex()):
            beta, alpha = int(beta), int(alpha)  # as PyTorch's integers take them
        return function(self, left, right, beta=beta, alpha=alpha)


for _name in ("addmv", "addbmm", "baddbmm"):
    _scaled_product(_name)


@composite("addr")
def addr(self, vec1, vec2, *, beta=1, alpha=1):
    return hf.addr(self, vec1, vec2, beta=beta, alpha=alpha)


@composite("vdot")
def vdot(self, other):
    return hf.vdot(self, other)


@composite("_int_mm")
def _int_mm(self, mat2):
    return _ops.matmul(_ops.to(self, _C.int32), _ops.to(mat2, _C.int32))


# ---- distances


@composite("_cdist_forward")
def _cdist_forward(x1, x2, p, compute_mode):
    return hf.cdist(x1, x2, p, _CDIST_MODES[compute_mode or 0])


_CDIST_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@composite("_cdist_backward")
def _cdist_backward(grad_output, x1, x2, p, cdist):
    return gradients(lambda x: hf.cdist(x, x2, p, _CDIST_MODES[2]), grad_output, x1)[0]


@composite("_pdist_forward")
def _pdist_forward(self, p=2.0):
    return hf.pdist(self, p)


@composite("_pdist_backward")
def _pdist_backward(grad_output, self, p, pdist):
    return gradients(lambda x: hf.pdist(x, p), grad_output, self)[0]
