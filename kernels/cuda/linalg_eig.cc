// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigenvalues and eigenvectors of real matrices that need not be symmetric.
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_solver.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matrix_batch.h"
#include "ops/complex.h"

namespace holdfast::cuda {
namespace {

// out[i][j] = element i of eigenvector j, from the columns of `packed`
// (GeneralEigen). Of a pair the first has the positive imaginary part.
template <typename T>
absl::Status Unpack(KernelContext& context, int64_t n, int64_t count,
                    const Complex<T>* values, const T* packed,
                    Complex<T>* out) {
  return ForEach(context, count * n * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t matrix = i / (n * n), row = i / n % n, j = i % n;
    const T imaginary = values[matrix * n + j].imag;
    const T* const column = packed + (matrix * n + j) * n + row;
    if (imaginary > T(0) && j + 1 < n) {
      out[i] = {column[0], column[n]};
    } else if (imaginary < T(0) && j > 0) {
      out[i] = {column[-n], -column[0]};
    } else {
      out[i] = {column[0], T(0)};
    }
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(linalg_eig) {
  const TensorView& in = inputs[0];
  const TensorView& values = outputs[0];
  const TensorView& vectors = outputs[1];
  const bool wanted = attrs.Bool("vectors");
  if (in.spec->numel() == 0) return absl::OkStatus();
  const DType dtype = in.spec->dtype;
  const int64_t count = BatchSize(*in.spec), n = MatrixRows(*in.spec);
  int32_t* const info = ScratchOf<int32_t>(context, count);
  void* const packed = wanted ? context.Scratch(in.spec->nbytes()) : nullptr;
  if (info == nullptr || (wanted && packed == nullptr)) return NoScratch();
  absl::StatusOr<void*> a = CopyColumnMajor(context, in);
  if (!a.ok()) return a.status();
  absl::Status s = CheckFinite(context, "eig", dtype, count, n * n, *a);
  if (s.ok()) {
    s = GeneralEigen(context, dtype, wanted, n, count, *a, values.data, packed,
                     info);
  }
  if (s.ok()) s = CheckConverged(context, "eig", count, info);
  if (!s.ok() || !wanted) return s;
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Unpack<T>(context, n, count, values.as<Complex<T>>(),
                     static_cast<const T*>(packed), vectors.as<Complex<T>>());
  });
}

}  // namespace holdfast::cuda
