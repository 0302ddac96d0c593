// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Factorisations of matrices: cuSOLVER and cuBLAS on a device
// (dense_solver.cc, dense_spectral.cc), LAPACK on the host, for tests
// (dense_solver_on_host.cc). A batch is `count` matrices that follow each
// other without gaps. They are column-major: a contiguous tensor is the
// transpose of what is seen here. Types are float32 and float64, with the
// complex ones where it says so. All pointers are to device memory; info has a
// number for each matrix, 0 where all is well. REQUIRES: no size is 0.
// Thread-safety: as the context.
#ifndef HOLDFAST_KERNELS_CUDA_DENSE_SOLVER_H_
#define HOLDFAST_KERNELS_CUDA_DENSE_SOLVER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// a, n x n, becomes L (A = L L^T) or U (A = U^T U), `upper`, whose triangle
// alone is read; the other one is lost. info: the order of the first leading
// minor that is not positive.
absl::Status FactorCholesky(KernelContext& context, DType dtype, bool upper,
                            int64_t n, int64_t count, void* a, int32_t* info);

// a, m x n, becomes L and U of P A = L U, with min(m, n) exchanges of rows,
// counted from 1. info: the first zero on U's diagonal, counted from 1.
// Complex types too.
absl::Status FactorLu(KernelContext& context, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, int32_t* pivots, int32_t* info);

struct TriangularSystem {
  bool right = false;  // X op(A) = B in place of op(A) X = B
  bool upper = false;  // the triangle of A that is read
  bool transposed = false;
  bool unit = false;     // the diagonal is not read, and 1
  int64_t m = 0, n = 0;  // B's rows and columns
  int64_t lda = 0;       // elements from column to column of A
  int64_t order() const { return right ? n : m; }
};
// b becomes X. a[i]: the matrix of b's i-th one. Complex types too.
absl::Status SolveTriangular(KernelContext& context, DType dtype,
                             const TriangularSystem& system,
                             absl::Span<const void* const> a, void* b);

// a, m x n, becomes R, and below the diagonal min(m, n) reflections, whose
// factors are tau.
absl::Status FactorQr(KernelContext& context, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, void* tau);
// q, m x columns, becomes the first columns of the product of the k reflections
// in its first k columns. REQUIRES: m >= columns >= k.
absl::Status FormQ(KernelContext& context, DType dtype, int64_t m,
                   int64_t columns, int64_t k, int64_t count, void* q,
                   const void* tau);

// w: the n eigenvalues, ascending, of symmetric matrices of which one triangle
// is read. a becomes the eigenvectors, or is lost.
absl::Status SymmetricEigen(KernelContext& context, DType dtype, bool vectors,
                            bool upper, int64_t n, int64_t count, void* a,
                            void* w, int32_t* info);

struct SingularShape {
  int64_t m = 0, n = 0;  // m >= n
  bool vectors = false;
  bool full = false;  // m columns of U in place of n
  int64_t columns() const { return full ? m : n; }
};
// A = U diag(s) V^T: s has n descending values, u m x columns() elements, v
// n x n. Without vectors u and v are null. a stays.
absl::Status SingularValues(KernelContext& context, DType dtype,
                            const SingularShape& shape, int64_t count,
                            const void* a, void* s, void* u, void* v,
                            int32_t* info);

// w: the n eigenvalues, complex numbers. Of v, n x n, column j is the
// eigenvector of a real eigenvalue j; columns j and j + 1 are the real and the
// imaginary part of that of j, which j + 1 is the conjugate of. Without vectors
// v is null. a is lost.
absl::Status GeneralEigen(KernelContext& context, DType dtype, bool vectors,
                          int64_t n, int64_t count, void* a, void* w, void* v,
                          int32_t* info);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DENSE_SOLVER_H_
