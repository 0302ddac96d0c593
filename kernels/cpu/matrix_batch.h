// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels over batches of matrices share: the loop over the batch, copies
// that transpose, checks of values.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_MATRIX_BATCH_H_
#define HOLDFAST_KERNELS_CPU_MATRIX_BATCH_H_

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernel.h"
#include "kernels/lapack.h"
#include "kernels/linalg.h"
#include "kernels/op_time.h"

namespace holdfast::cpu {

// The largest number of elements LAPACK wants as work space, from its answer
// to a query, which a float cannot hold exactly.
template <typename T>
int WorkSize(T answer) {
  return static_cast<int>(answer * (1 + std::numeric_limits<T>::epsilon())) + 1;
}

// OpTime::CheckCall for one m x n matrix. `each`: seconds that LAPACK takes for
// float32 on one fast thread, for each of m * n * min(m, n).
template <typename T>
absl::Status CheckLapackTime(absl::string_view name, int64_t m, int64_t n,
                             double each) {
  const double work = static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(std::min(m, n));
  return OpTime::CheckCall(
      absl::StrCat("[linalg_", name, "] LAPACK on a matrix of ", m, " x ", n),
      work * each * (sizeof(T) / sizeof(float)));
}

// Calls fn(i, scratch) -> absl::Status for i in [0, count), several at a time.
// `scratch` has room for `elements` of T; `cost` is one call's arithmetic.
// The status is that of the first matrix that fails, in the batch's order.
template <typename T, typename F>
absl::Status ForEachMatrix(KernelContext& context, int64_t count, double cost,
                           int64_t elements, F&& fn) {
  if (count == 0) return absl::OkStatus();
  const int threads =
      static_cast<int>(std::min<int64_t>(count, context.num_threads));
  const size_t bytes = (elements * sizeof(T) + 127) / 64 * 64;
  char* scratch = static_cast<char*>(context.Scratch(bytes * threads));
  if (scratch == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory for a matrix");
  }
  FirstFailure failure;
  const int64_t grain =
      std::max<int64_t>(1, static_cast<int64_t>(1e5 / std::max(cost, 1.0)));
  ParallelFor(context, count, grain, [&](int64_t begin, int64_t end) {
    const lapack::OneThread one;
    char* mine = scratch + omp_get_thread_num() % threads * bytes;
    for (int64_t i = begin; i < end; ++i) {
      absl::Status s = fn(i, reinterpret_cast<T*>(mine));
      if (s.ok()) continue;
      failure.Note(i, std::move(s));
      return;
    }
  });
  return failure.Take();
}

// dst = the transpose of src, which has `rows` rows of `columns` elements.
template <typename T>
void TransposeMatrix(const T* src, int64_t rows, int64_t columns, T* dst) {
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(rows, i0 + kBlock);
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      const int64_t j1 = std::min(columns, j0 + kBlock);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) {
          dst[j * rows + i] = src[i * columns + j];
        }
      }
    }
  }
}

template <typename T>
void TransposeInPlace(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
  }
}

// LAPACK's iterations do not end well on NaN and infinity.
template <typename T>
bool AllFinite(const T* a, int64_t n) {
  T sum = 0;  // NaN as soon as one element is not finite
  for (int64_t i = 0; i < n; ++i) sum += a[i] * T(0);
  return sum == T(0);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_MATRIX_BATCH_H_
