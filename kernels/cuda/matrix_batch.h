// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels over batches of matrices share: copies that transpose, for
// dense_solver.h's column-major matrices, and checks.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_MATRIX_BATCH_H_
#define HOLDFAST_KERNELS_CUDA_MATRIX_BATCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/linalg.h"

namespace holdfast::cuda {

// The same memory with the last two dimensions exchanged.
inline TensorSpec Transposed(TensorSpec spec) {
  const int rank = spec.rank();
  std::swap(spec.shape[rank - 2], spec.shape[rank - 1]);
  std::swap(spec.strides[rank - 2], spec.strides[rank - 1]);
  return spec;
}

// `shape`'s matrices column by column, in memory of ours.
inline TensorSpec ColumnMajorSpec(DType dtype, Dims shape) {
  std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  return Transposed(ContiguousSpec(dtype, shape));
}

// A copy in scratch memory that lies as `own` says, which `from` broadcasts to.
inline absl::StatusOr<void*> CopyMatrices(KernelContext& context,
                                          const TensorView& from,
                                          const TensorSpec& own) {
  void* const data = ScratchOf<char>(context, own.nbytes());
  if (data == nullptr) return NoScratch();
  absl::Status s = CudaCopy(context, from, {data, &own});
  if (!s.ok()) return s;
  return data;
}
inline absl::StatusOr<void*> CopyRowMajor(KernelContext& context,
                                          const TensorView& from) {
  return CopyMatrices(context, from,
                      ContiguousSpec(from.spec->dtype, from.spec->shape));
}
inline absl::StatusOr<void*> CopyColumnMajor(KernelContext& context,
                                             const TensorView& from) {
  return CopyMatrices(context, from,
                      ColumnMajorSpec(from.spec->dtype, from.spec->shape));
}

// out = the column-major matrices at `from`.
inline absl::Status CopyFromColumns(KernelContext& context, void* from,
                                    const TensorView& out) {
  const TensorSpec own = ColumnMajorSpec(out.spec->dtype, out.spec->shape);
  return CudaCopy(context, {from, &own}, out);
}

// An error if one of the `size` numbers of one of the matrices is not finite.
template <typename T>
absl::Status CheckFinite(KernelContext& context, absl::string_view name,
                         int64_t count, int64_t size, const T* a) {
  absl::StatusOr<int64_t> found =
      FirstFault(context, count * size, [=] HOLDFAST_LAMBDA(int64_t i) {
        return !(a[i] - a[i] == T(0));  // NaN, for NaN and infinity
      });
  if (!found.ok()) return found.status();
  return *found < 0 ? absl::OkStatus()
                    : MatrixNotFinite(name, count, *found / size);
}
inline absl::Status CheckFinite(KernelContext& context, absl::string_view name,
                                DType dtype, int64_t count, int64_t size,
                                const void* a) {
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return CheckFinite<T>(context, name, count, size, static_cast<const T*>(a));
  });
}

// The numbers of all matrices. Waits.
inline absl::StatusOr<std::vector<int32_t>> ReadInfo(KernelContext& context,
                                                     int64_t count,
                                                     const int32_t* info) {
  std::vector<int32_t> read(count);
  absl::Status s =
      Cuda(context).CopyToHost(read.data(), info, count * sizeof(int32_t));
  if (!s.ok()) return s;
  return read;
}

// The error of the first matrix that an iteration did not converge for. Waits.
inline absl::Status CheckConverged(KernelContext& context,
                                   absl::string_view name, int64_t count,
                                   const int32_t* info) {
  absl::StatusOr<std::vector<int32_t>> read = ReadInfo(context, count, info);
  if (!read.ok()) return read.status();
  for (int64_t i = 0; i < count; ++i) {
    if ((*read)[i] != 0) return NotConverged(name, count, i, (*read)[i]);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_MATRIX_BATCH_H_
