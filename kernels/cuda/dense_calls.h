// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls of cuSOLVER and cuBLAS share: the library on the op's stream, work
// space, arrays of pointers, and each function's variant for an element type.
// Thread-safety: as the context.
#ifndef HOLDFAST_KERNELS_CUDA_DENSE_CALLS_H_
#define HOLDFAST_KERNELS_CUDA_DENSE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/dense_library.h"
#include "kernels/cuda/launch.h"
#include "ops/complex.h"

namespace holdfast::cuda {

// Matrices of this order and more are factored one by one, smaller ones of a
// batch in one call.
inline constexpr int64_t kLargeOrder = 512;
// Matrices that a call for many is given: cuSOLVER's refuse more than 32768.
inline constexpr int64_t kMostAtOnce = 16384;

// The library, whose calls go to the op's stream.
inline absl::StatusOr<const DenseLibrary*> DenseOf(KernelContext& context) {
  absl::StatusOr<const DenseLibrary*> opened =
      Cuda(context).libraries().dense();
  if (!opened.ok()) return opened.status();
  const DenseLibrary& dense = **opened;
  absl::Status s =
      dense.Told(dense.cusolverDnSetStream(dense.solver, StreamOf(context)),
                 "cusolverDnSetStream");
  if (s.ok()) {
    s = dense.Told(dense.cublasSetStream_v2(dense.blas, StreamOf(context)),
                   "cublasSetStream");
  }
  if (!s.ok()) return s;
  return &dense;
}

// Work space of the calls of one function, one call after the other.
struct DenseWork {
  size_t device_bytes = 0, host_bytes = 0;  // as the library was asked for
  void* device = nullptr;
  std::vector<char> host;

  absl::Status Allocate(KernelContext& context) {
    host.resize(host_bytes);
    device = context.Scratch(device_bytes > 0 ? device_bytes : 1);
    return device == nullptr ? NoScratch() : absl::OkStatus();
  }
  // After each call: the library may use host memory until the stream is done.
  absl::Status Release(KernelContext& context) const {
    return host.empty() ? absl::OkStatus()
                        : Cuda(context).CopyToHost(nullptr, nullptr, 0);
  }
};

// A copy of an array of pointers; null if there is no memory.
inline absl::StatusOr<void*> PointersOnDevice(
    KernelContext& context, absl::Span<const void* const> pointers) {
  void* const copy = ScratchOf<void*>(context, pointers.size());
  if (copy == nullptr) return NoScratch();
  absl::Status s = Cuda(context).CopyToDevice(copy, pointers.data(),
                                              pointers.size() * sizeof(void*));
  if (!s.ok()) return s;
  return copy;
}
// The same for `count` matrices of `bytes` that follow each other.
inline absl::StatusOr<void*> MatricesOnDevice(KernelContext& context,
                                              void* first, int64_t bytes,
                                              int64_t count) {
  std::vector<const void*> pointers(count);
  for (int64_t i = 0; i < count; ++i) {
    pointers[i] = static_cast<char*>(first) + i * bytes;
  }
  return PointersOnDevice(context, pointers);
}

// Element types: the library's own, and its name for them.
template <typename T>
struct DenseType;
template <>
struct DenseType<float> {
  using Element = float;
  static constexpr cudaDataType kData = CUDA_R_32F;
};
template <>
struct DenseType<double> {
  using Element = double;
  static constexpr cudaDataType kData = CUDA_R_64F;
};
template <>
struct DenseType<Complex<float>> {
  using Element = cuComplex;
  static constexpr cudaDataType kData = CUDA_C_32F;
};
template <>
struct DenseType<Complex<double>> {
  using Element = cuDoubleComplex;
  static constexpr cudaDataType kData = CUDA_C_64F;
};

// One of a library's functions, by element type: of four, or of the real two.
template <typename T, typename S, typename D, typename C, typename Z>
auto FieldVariant(S s, D d, C c, Z z) {
  if constexpr (std::is_same_v<T, float>) {
    return s;
  } else if constexpr (std::is_same_v<T, double>) {
    return d;
  } else if constexpr (std::is_same_v<T, Complex<float>>) {
    return c;
  } else {
    return z;
  }
}
template <typename T, typename S, typename D>
auto RealVariant(S s, D d) {
  if constexpr (std::is_same_v<T, float>) {
    return s;
  } else {
    return d;
  }
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DENSE_CALLS_H_
