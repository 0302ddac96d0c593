// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What devices share of linear algebra: the sizes of batches of matrices, and
// the errors that matrices can lead to.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_LINALG_H_
#define HOLDFAST_KERNELS_LINALG_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/tensor_spec.h"

namespace holdfast {

inline int64_t MatrixRows(const TensorSpec& a) { return a.shape[a.rank() - 2]; }
inline int64_t MatrixColumns(const TensorSpec& a) {
  return a.shape[a.rank() - 1];
}
// Number of matrices; the last `tail` dimensions are each one's own.
inline int64_t BatchSize(const TensorSpec& a, int tail = 2) {
  return NumElements(absl::MakeConstSpan(a.shape).first(a.rank() - tail));
}

// "linalg.svd: (Batch element 3): The algorithm ...", as PyTorch puts it, of
// matrix `i` of `count`.
inline absl::Status MatrixError(absl::string_view name, int64_t count,
                                int64_t i, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(
      "linalg.", name, ": ",
      count == 1 ? std::string() : absl::StrCat("(Batch element ", i, "): "),
      message));
}

// `order`: of the first leading minor that is not positive.
inline absl::Status NotPositiveDefinite(int64_t count, int64_t i,
                                        int64_t order) {
  return MatrixError(
      "cholesky", count, i,
      absl::StrCat("The factorization could not be completed because the "
                   "input is not positive-definite (the leading minor of "
                   "order ",
                   order, " is not positive-definite)."));
}

inline absl::Status SingularMatrix(int64_t count, int64_t i) {
  return MatrixError("solve", count, i,
                     "The solver failed because the input matrix is "
                     "singular.");
}

// Of algorithms that iterate.
inline absl::Status MatrixNotFinite(absl::string_view name, int64_t count,
                                    int64_t i) {
  return MatrixError(name, count, i,
                     name == "eig"
                         ? "input tensor should not contain infs or NaNs."
                         : "The algorithm failed to converge because the input "
                           "matrix contained non-finite values.");
}

// `info`: LAPACK's.
inline absl::Status NotConverged(absl::string_view name, int64_t count,
                                 int64_t i, int info) {
  return MatrixError(
      name, count, i,
      name == "eig"
          ? absl::StrCat("the algorithm failed to converge; only eigenvalues "
                         "from ",
                         info, " on are known.")
          : absl::StrCat("The algorithm failed to converge because the input "
                         "matrix is ill-conditioned or has too many repeated "
                         "values (error code: ",
                         info, ")."));
}

inline absl::Status BadPivot(int64_t rows, int64_t pivot) {
  return absl::InvalidArgumentError(absl::StrCat(
      "pivots must be between 1 and ", rows, ", but one is ", pivot));
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_LINALG_H_
