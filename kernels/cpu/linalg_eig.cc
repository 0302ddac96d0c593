// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigenvalues and eigenvectors of real matrices that need not be symmetric.
#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/dtype_dispatch.h"
#include "ops/complex.h"

namespace holdfast::cpu {
namespace {

// LAPACK has the real and the imaginary part of a conjugate pair of vectors in
// two columns of `packed`, real vectors in one each. Rows of `out` are rows of
// the matrix of eigenvectors.
template <typename T>
void Unpack(const T* packed, const T* imaginary, int64_t n, Complex<T>* out) {
  for (int64_t j = 0; j < n; ++j) {
    const T* re = packed + j * n;
    if (imaginary[j] == T(0) || j + 1 == n) {
      for (int64_t i = 0; i < n; ++i) out[i * n + j] = {re[i], T(0)};
      continue;
    }
    const T* im = re + n;
    for (int64_t i = 0; i < n; ++i) {
      out[i * n + j] = {re[i], im[i]};
      out[i * n + j + 1] = {re[i], -im[i]};
    }
    ++j;
  }
}

}  // namespace

HOLDFAST_CPU_KERNEL(linalg_eig) {
  const TensorView& values = outputs[0];
  const TensorView& vectors = outputs[1];
  const bool wanted = attrs.Bool("vectors");
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], inputs[0].spec->dtype, &spec, &in);
  if (!s.ok()) return s;
  const int64_t count = BatchSize(*in.spec), n = MatrixRows(*in.spec);
  if (n == 0) return absl::OkStatus();
  return DispatchFloat(in.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    constexpr double kEig = 4.0e-9;
    absl::Status t = CheckLapackTime<T>("eig", n, n, kEig);
    if (!t.ok()) return t;
    const char job = wanted ? 'V' : 'N';
    T size = 0;
    lapack::geev(job, n, nullptr, n, nullptr, nullptr, nullptr, n, &size, -1);
    const int lwork = WorkSize(size);
    return ForEachMatrix<T>(
        context, count, 25.0 * n * n * n,
        n * n * (wanted ? 2 : 1) + 2 * n + lwork,
        [&](int64_t i, T* a) -> absl::Status {
          T* re = a + n * n;
          T* im = re + n;
          T* work = im + n;
          T* packed = work + lwork;
          TransposeMatrix(in.as<T>() + i * n * n, n, n, a);
          if (!AllFinite(a, n * n)) {
            return MatrixNotFinite("eig", count, i);
          }
          const int info =
              lapack::geev(job, n, a, n, re, im, packed, n, work, lwork);
          if (info != 0) {
            return NotConverged("eig", count, i, info);
          }
          Complex<T>* w = values.as<Complex<T>>() + i * n;
          for (int64_t j = 0; j < n; ++j) w[j] = {re[j], im[j]};
          if (wanted)
            Unpack(packed, im, n, vectors.as<Complex<T>>() + i * n * n);
          return absl::OkStatus();
        });
  });
}

}  // namespace holdfast::cpu
