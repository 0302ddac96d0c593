// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// dense_solver.h on a device: systems and the factorisations behind them.
#include "kernels/cuda/dense_solver.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/dense_calls.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cuda {
namespace {

template <typename T>
T* At(void* matrices, int64_t i, int64_t size) {
  return static_cast<T*>(matrices) + i * size;
}

// Whether the matrices of a batch are better factored by one call.
bool InOneCall(int64_t order, int64_t count) {
  return count > 1 && order < kLargeOrder;
}

cublasFillMode_t FillMode(bool upper) {
  return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
}

// ---- Cholesky

template <typename T>
absl::Status CholeskyOfMany(KernelContext& context, const DenseLibrary& dense,
                            bool upper, int64_t n, int64_t count, T* a,
                            int32_t* info) {
  const auto potrf = RealVariant<T>(dense.cusolverDnSpotrfBatched,
                                    dense.cusolverDnDpotrfBatched);
  absl::StatusOr<void*> pointers =
      MatricesOnDevice(context, a, n * n * sizeof(T), count);
  if (!pointers.ok()) return pointers.status();
  for (int64_t i = 0; i < count; i += kMostAtOnce) {
    absl::Status s = dense.Told(
        potrf(dense.solver, FillMode(upper), static_cast<int>(n),
              static_cast<T**>(*pointers) + i, static_cast<int>(n), info + i,
              static_cast<int>(std::min(kMostAtOnce, count - i))),
        "cusolverDn potrfBatched");
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CholeskyOfEach(KernelContext& context, const DenseLibrary& dense,
                            bool upper, int64_t n, int64_t count, T* a,
                            int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  DenseWork work;
  absl::Status s =
      dense.Told(dense.cusolverDnXpotrf_bufferSize(
                     dense.solver, dense.params, FillMode(upper), n, kData, a,
                     n, kData, &work.device_bytes, &work.host_bytes),
                 "cusolverDnXpotrf_bufferSize");
  if (s.ok()) s = work.Allocate(context);
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(dense.cusolverDnXpotrf(
                       dense.solver, dense.params, FillMode(upper), n, kData,
                       a + i * n * n, n, kData, work.device, work.device_bytes,
                       work.host.data(), work.host_bytes, info + i),
                   "cusolverDnXpotrf");
    if (s.ok()) s = work.Release(context);
  }
  return s;
}

// ---- LU

// cuBLAS counts exchanges in 32 bits, cuSOLVER in 64.
absl::Status NarrowPivots(KernelContext& context, int64_t n,
                          const int64_t* wide, int32_t* pivots) {
  return ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    pivots[i] = static_cast<int32_t>(wide[i]);
  });
}

template <typename T>
absl::Status LuOfMany(KernelContext& context, const DenseLibrary& dense,
                      int64_t n, int64_t count, void* a, int32_t* pivots,
                      int32_t* info) {
  using Element = typename DenseType<T>::Element;
  const auto getrf =
      FieldVariant<T>(dense.cublasSgetrfBatched, dense.cublasDgetrfBatched,
                      dense.cublasCgetrfBatched, dense.cublasZgetrfBatched);
  absl::StatusOr<void*> pointers =
      MatricesOnDevice(context, a, n * n * sizeof(T), count);
  if (!pointers.ok()) return pointers.status();
  for (int64_t i = 0; i < count; i += kMostAtOnce) {
    absl::Status s =
        dense.Told(getrf(dense.blas, static_cast<int>(n),
                         static_cast<Element* const*>(*pointers) + i,
                         static_cast<int>(n), pivots + i * n, info + i,
                         static_cast<int>(std::min(kMostAtOnce, count - i))),
                   "cublas getrfBatched");
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status LuOfEach(KernelContext& context, const DenseLibrary& dense,
                      int64_t m, int64_t n, int64_t count, T* a,
                      int32_t* pivots, int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  const int64_t k = std::min(m, n);
  int64_t* const wide = ScratchOf<int64_t>(context, count * k);
  if (wide == nullptr) return NoScratch();
  DenseWork work;
  absl::Status s = dense.Told(dense.cusolverDnXgetrf_bufferSize(
                                  dense.solver, dense.params, m, n, kData, a, m,
                                  kData, &work.device_bytes, &work.host_bytes),
                              "cusolverDnXgetrf_bufferSize");
  if (s.ok()) s = work.Allocate(context);
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(dense.cusolverDnXgetrf(
                       dense.solver, dense.params, m, n, kData, a + i * m * n,
                       m, wide + i * k, kData, work.device, work.device_bytes,
                       work.host.data(), work.host_bytes, info + i),
                   "cusolverDnXgetrf");
    if (s.ok()) s = work.Release(context);
  }
  return s.ok() ? NarrowPivots(context, count * k, wide, pivots) : s;
}

// ---- triangular systems

template <typename T>
absl::Status Solve(KernelContext& context, const DenseLibrary& dense,
                   const TriangularSystem& system,
                   absl::Span<const void* const> a, void* b) {
  using Element = typename DenseType<T>::Element;
  const T number = T(1);
  Element one;
  static_assert(sizeof(one) == sizeof(number));
  std::copy_n(reinterpret_cast<const char*>(&number), sizeof(one),
              reinterpret_cast<char*>(&one));
  const cublasSideMode_t side =
      system.right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
  const cublasOperation_t op = system.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasDiagType_t diagonal =
      system.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  const cublasFillMode_t fill = FillMode(system.upper);
  const int64_t m = system.m, n = system.n;
  const int64_t count = static_cast<int64_t>(a.size());
  if (InOneCall(system.order(), count)) {
    const auto trsm = FieldVariant<T>(
        dense.cublasStrsmBatched_64, dense.cublasDtrsmBatched_64,
        dense.cublasCtrsmBatched_64, dense.cublasZtrsmBatched_64);
    absl::StatusOr<void*> as = PointersOnDevice(context, a);
    if (!as.ok()) return as.status();
    absl::StatusOr<void*> bs =
        MatricesOnDevice(context, b, m * n * sizeof(T), count);
    if (!bs.ok()) return bs.status();
    absl::Status s;
    for (int64_t i = 0; i < count && s.ok(); i += kMostAtOnce) {
      s = dense.Told(trsm(dense.blas, side, fill, op, diagonal, m, n, &one,
                          static_cast<const Element* const*>(*as) + i,
                          system.lda, static_cast<Element* const*>(*bs) + i, m,
                          std::min(kMostAtOnce, count - i)),
                     "cublas trsmBatched");
    }
    return s;
  }
  const auto trsm =
      FieldVariant<T>(dense.cublasStrsm_v2_64, dense.cublasDtrsm_v2_64,
                      dense.cublasCtrsm_v2_64, dense.cublasZtrsm_v2_64);
  absl::Status s;
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(trsm(dense.blas, side, fill, op, diagonal, m, n, &one,
                        static_cast<const Element*>(a[i]), system.lda,
                        reinterpret_cast<Element*>(At<T>(b, i, m * n)), m),
                   "cublas trsm");
  }
  return s;
}

// ---- QR

template <typename T>
absl::Status Qr(KernelContext& context, const DenseLibrary& dense, int64_t m,
                int64_t n, int64_t count, T* a, T* tau) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  int32_t* const info = ScratchOf<int32_t>(context, 1);  // of the arguments
  if (info == nullptr) return NoScratch();
  DenseWork work;
  absl::Status s =
      dense.Told(dense.cusolverDnXgeqrf_bufferSize(
                     dense.solver, dense.params, m, n, kData, a, m, kData, tau,
                     kData, &work.device_bytes, &work.host_bytes),
                 "cusolverDnXgeqrf_bufferSize");
  if (s.ok()) s = work.Allocate(context);
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(
        dense.cusolverDnXgeqrf(
            dense.solver, dense.params, m, n, kData, a + i * m * n, m, kData,
            tau + i * std::min(m, n), kData, work.device, work.device_bytes,
            work.host.data(), work.host_bytes, info),
        "cusolverDnXgeqrf");
    if (s.ok()) s = work.Release(context);
  }
  return s;
}

template <typename T>
absl::Status Orthogonal(KernelContext& context, const DenseLibrary& dense,
                        int m, int columns, int k, int64_t count, T* q,
                        const T* tau) {
  int32_t* const info = ScratchOf<int32_t>(context, 1);  // of the arguments
  if (info == nullptr) return NoScratch();
  const auto size = RealVariant<T>(dense.cusolverDnSorgqr_bufferSize,
                                   dense.cusolverDnDorgqr_bufferSize);
  const auto orgqr =
      RealVariant<T>(dense.cusolverDnSorgqr, dense.cusolverDnDorgqr);
  int elements = 0;
  absl::Status s =
      dense.Told(size(dense.solver, m, columns, k, q, m, tau, &elements),
                 "cusolverDn orgqr_bufferSize");
  if (!s.ok()) return s;
  T* const work = ScratchOf<T>(context, elements);
  if (work == nullptr) return NoScratch();
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(
        orgqr(dense.solver, m, columns, k, q + i * m * int64_t{columns}, m,
              tau + i * k, work, elements, info),
        "cusolverDn orgqr");
  }
  return s;
}

}  // namespace

absl::Status FactorCholesky(KernelContext& context, DType dtype, bool upper,
                            int64_t n, int64_t count, void* a, int32_t* info) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run =
        InOneCall(n, count) ? CholeskyOfMany<T> : CholeskyOfEach<T>;
    return run(context, **dense, upper, n, count, static_cast<T*>(a), info);
  });
}

absl::Status FactorLu(KernelContext& context, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, int32_t* pivots, int32_t* info) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchField(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return m == n && InOneCall(n, count)
               ? LuOfMany<T>(context, **dense, n, count, a, pivots, info)
               : LuOfEach<T>(context, **dense, m, n, count, static_cast<T*>(a),
                             pivots, info);
  });
}

absl::Status SolveTriangular(KernelContext& context, DType dtype,
                             const TriangularSystem& system,
                             absl::Span<const void* const> a, void* b) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchField(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Solve<T>(context, **dense, system, a, b);
  });
}

absl::Status FactorQr(KernelContext& context, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, void* tau) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Qr<T>(context, **dense, m, n, count, static_cast<T*>(a),
                 static_cast<T*>(tau));
  });
}

absl::Status FormQ(KernelContext& context, DType dtype, int64_t m,
                   int64_t columns, int64_t k, int64_t count, void* q,
                   const void* tau) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Inference knows no larger sides (kMaxLength in ops/infer_linalg.cc).
    return Orthogonal<T>(context, **dense, static_cast<int>(m),
                         static_cast<int>(columns), static_cast<int>(k), count,
                         static_cast<T*>(q), static_cast<const T*>(tau));
  });
}

}  // namespace holdfast::cuda
