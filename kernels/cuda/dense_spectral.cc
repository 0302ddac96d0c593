// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// dense_solver.h on a device: eigenvalues and singular values.
#include <algorithm>
#include <limits>

#include "kernels/cuda/dense_calls.h"
#include "kernels/cuda/dense_solver.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cuda {
namespace {

cusolverEigMode_t ModeOf(bool vectors) {
  return vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

// ---- symmetric matrices

struct SymmetricCall {
  KernelContext& context;
  const DenseLibrary& dense;
  cusolverEigMode_t mode;
  cublasFillMode_t fill;
  int64_t n;
};

template <typename T>
absl::Status EigenOfMany(const SymmetricCall& call, int64_t count, T* a, T* w,
                         int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  const DenseLibrary& dense = call.dense;
  const int64_t n = call.n;
  DenseWork work;
  absl::Status s =
      dense.Told(dense.cusolverDnXsyevBatched_bufferSize(
                     dense.solver, dense.params, call.mode, call.fill, n, kData,
                     a, n, kData, w, kData, &work.device_bytes,
                     &work.host_bytes, std::min(kMostAtOnce, count)),
                 "cusolverDnXsyevBatched_bufferSize");
  if (s.ok()) s = work.Allocate(call.context);
  for (int64_t i = 0; i < count && s.ok(); i += kMostAtOnce) {
    s = dense.Told(
        dense.cusolverDnXsyevBatched(
            dense.solver, dense.params, call.mode, call.fill, n, kData,
            a + i * n * n, n, kData, w + i * n, kData, work.device,
            work.device_bytes, work.host.data(), work.host_bytes, info + i,
            std::min(kMostAtOnce, count - i)),
        "cusolverDnXsyevBatched");
    if (s.ok()) s = work.Release(call.context);
  }
  return s;
}

template <typename T>
absl::Status EigenOfEach(const SymmetricCall& call, int64_t count, T* a, T* w,
                         int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  const DenseLibrary& dense = call.dense;
  const int64_t n = call.n;
  DenseWork work;
  absl::Status s = dense.Told(
      dense.cusolverDnXsyevd_bufferSize(
          dense.solver, dense.params, call.mode, call.fill, n, kData, a, n,
          kData, w, kData, &work.device_bytes, &work.host_bytes),
      "cusolverDnXsyevd_bufferSize");
  if (s.ok()) s = work.Allocate(call.context);
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(
        dense.cusolverDnXsyevd(dense.solver, dense.params, call.mode, call.fill,
                               n, kData, a + i * n * n, n, kData, w + i * n,
                               kData, work.device, work.device_bytes,
                               work.host.data(), work.host_bytes, info + i),
        "cusolverDnXsyevd");
    if (s.ok()) s = work.Release(call.context);
  }
  return s;
}

// ---- singular values

struct SingularCall {
  KernelContext& context;
  const DenseLibrary& dense;
  const SingularShape& shape;
  int64_t count;
};

// The largest sides that cuSOLVER takes many matrices of at once.
constexpr int64_t kTinySide = 32;

// Jacobi's method for a batch of tiny matrices. It always makes square factors.
template <typename T>
absl::Status SingularOfTiny(const SingularCall& call, T* a, T* s, T* u, T* v,
                            int32_t* info) {
  const DenseLibrary& dense = call.dense;
  const int m = static_cast<int>(call.shape.m);
  const int n = static_cast<int>(call.shape.n);
  const int64_t columns = call.shape.columns();
  const int64_t most = std::min(kMostAtOnce, call.count);
  const cusolverEigMode_t mode = ModeOf(call.shape.vectors);
  // Without vectors it wants their memory nevertheless.
  T* const own_u = ScratchOf<T>(call.context, most * m * m);
  T* const own_v = ScratchOf<T>(call.context, most * n * n);
  if (own_u == nullptr || own_v == nullptr) return NoScratch();
  const auto size = RealVariant<T>(dense.cusolverDnSgesvdjBatched_bufferSize,
                                   dense.cusolverDnDgesvdjBatched_bufferSize);
  const auto gesvdj = RealVariant<T>(dense.cusolverDnSgesvdjBatched,
                                     dense.cusolverDnDgesvdjBatched);
  int elements = 0;
  absl::Status status =
      dense.Told(size(dense.solver, mode, m, n, a, m, s, own_u, m, own_v, n,
                      &elements, dense.jacobi, static_cast<int>(most)),
                 "cusolverDn gesvdjBatched_bufferSize");
  if (!status.ok()) return status;
  T* const work = ScratchOf<T>(call.context, elements);
  if (work == nullptr) return NoScratch();
  for (int64_t i = 0; i < call.count && status.ok(); i += kMostAtOnce) {
    const int64_t now = std::min(kMostAtOnce, call.count - i);
    status = dense.Told(gesvdj(dense.solver, mode, m, n, a + i * m * n, m,
                               s + i * n, own_u, m, own_v, n, work, elements,
                               info + i, dense.jacobi, static_cast<int>(now)),
                        "cusolverDn gesvdjBatched");
    if (!status.ok() || !call.shape.vectors) continue;
    const int64_t u_size = m * columns;
    T* const to_u = u + i * u_size;
    T* const to_v = v + i * n * n;
    status =
        ForEach(call.context, now * u_size, [=] HOLDFAST_LAMBDA(int64_t e) {
          to_u[e] = own_u[e / u_size * m * m + e % u_size];
        });
    if (status.ok()) {
      status =
          Cuda(call.context).CopyOnDevice(to_v, own_v, now * n * n * sizeof(T));
    }
  }
  return status;
}

// Jacobi's method, matrix by matrix.
template <typename T>
absl::Status SingularByJacobi(const SingularCall& call, T* a, T* s, T* u, T* v,
                              int32_t* info) {
  const DenseLibrary& dense = call.dense;
  const bool vectors = call.shape.vectors;
  const int m = static_cast<int>(call.shape.m);
  const int n = static_cast<int>(call.shape.n);
  const int64_t u_size = vectors ? m * call.shape.columns() : 0;
  const int64_t v_size = vectors ? int64_t{n} * n : 0;
  const int economic = vectors && call.shape.full ? 0 : 1;
  const cusolverEigMode_t mode = ModeOf(vectors);
  if (!vectors) {  // it wants their memory nevertheless
    u = ScratchOf<T>(call.context, int64_t{m} * n);
    v = ScratchOf<T>(call.context, int64_t{n} * n);
    if (u == nullptr || v == nullptr) return NoScratch();
  }
  const auto size = RealVariant<T>(dense.cusolverDnSgesvdj_bufferSize,
                                   dense.cusolverDnDgesvdj_bufferSize);
  const auto gesvdj =
      RealVariant<T>(dense.cusolverDnSgesvdj, dense.cusolverDnDgesvdj);
  int elements = 0;
  absl::Status status =
      dense.Told(size(dense.solver, mode, economic, m, n, a, m, s, u, m, v, n,
                      &elements, dense.jacobi),
                 "cusolverDn gesvdj_bufferSize");
  if (!status.ok()) return status;
  T* const work = ScratchOf<T>(call.context, elements);
  if (work == nullptr) return NoScratch();
  for (int64_t i = 0; i < call.count && status.ok(); ++i) {
    status =
        dense.Told(gesvdj(dense.solver, mode, economic, m, n, a + i * m * n, m,
                          s + i * n, u + i * u_size, m, v + i * v_size, n, work,
                          elements, info + i, dense.jacobi),
                   "cusolverDn gesvdj");
  }
  return status;
}

// The QR algorithm, which is slower, for those matrices of `a`, which are lost.
template <typename T>
absl::Status SingularByQr(const SingularCall& call,
                          const std::vector<int64_t>& which, T* a, T* s, T* u,
                          T* v, int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  const DenseLibrary& dense = call.dense;
  const bool vectors = call.shape.vectors;
  const int64_t m = call.shape.m, n = call.shape.n;
  const int64_t u_size = vectors ? m * call.shape.columns() : 0;
  const signed char job_u = !vectors ? 'N' : call.shape.full ? 'A' : 'S';
  const signed char job_v = vectors ? 'A' : 'N';
  // It makes V^T where V is wanted.
  T* const transposed = vectors ? ScratchOf<T>(call.context, n * n) : nullptr;
  if (vectors && transposed == nullptr) return NoScratch();
  DenseWork work;
  absl::Status status =
      dense.Told(dense.cusolverDnXgesvd_bufferSize(
                     dense.solver, dense.params, job_u, job_v, m, n, kData, a,
                     m, kData, s, kData, u, m, kData, transposed, n, kData,
                     &work.device_bytes, &work.host_bytes),
                 "cusolverDnXgesvd_bufferSize");
  if (status.ok()) status = work.Allocate(call.context);
  for (int64_t i : which) {
    if (!status.ok()) break;
    status =
        dense.Told(dense.cusolverDnXgesvd(
                       dense.solver, dense.params, job_u, job_v, m, n, kData,
                       a + i * m * n, m, kData, s + i * n, kData,
                       vectors ? u + i * u_size : nullptr, m, kData, transposed,
                       n, kData, work.device, work.device_bytes,
                       work.host.data(), work.host_bytes, info + i),
                   "cusolverDnXgesvd");
    if (status.ok()) status = work.Release(call.context);
    if (!status.ok() || !vectors) continue;
    T* const own = v + i * n * n;
    status = ForEach(call.context, n * n, [=] HOLDFAST_LAMBDA(int64_t e) {
      own[e] = transposed[e % n * n + e / n];
    });
  }
  return status;
}

// Jacobi's method, and QR for what it does not converge for, or is too large
// for its 32-bit sizes.
template <typename T>
absl::Status Singular(const SingularCall& call, const T* a, T* s, T* u, T* v,
                      int32_t* info) {
  const SingularShape& shape = call.shape;
  const int64_t bytes = call.count * shape.m * shape.n * sizeof(T);
  T* const copy = ScratchOf<T>(call.context, call.count * shape.m * shape.n);
  if (copy == nullptr) return NoScratch();
  absl::Status status = Cuda(call.context).CopyOnDevice(copy, a, bytes);
  if (!status.ok()) return status;
  std::vector<int64_t> rest;
  if (shape.m * shape.columns() > std::numeric_limits<int32_t>::max()) {
    for (int64_t i = 0; i < call.count; ++i) rest.push_back(i);
    return SingularByQr<T>(call, rest, copy, s, u, v, info);
  }
  status = shape.m <= kTinySide && call.count > 1
               ? SingularOfTiny<T>(call, copy, s, u, v, info)
               : SingularByJacobi<T>(call, copy, s, u, v, info);
  std::vector<int32_t> read(call.count);
  if (status.ok()) {
    status = Cuda(call.context)
                 .CopyToHost(read.data(), info, read.size() * sizeof(int32_t));
  }
  if (!status.ok()) return status;
  for (int64_t i = 0; i < call.count; ++i) {
    if (read[i] > 0) rest.push_back(i);
  }
  if (rest.empty()) return absl::OkStatus();
  status = Cuda(call.context).CopyOnDevice(copy, a, bytes);
  return status.ok() ? SingularByQr<T>(call, rest, copy, s, u, v, info)
                     : status;
}

// ---- any matrices

template <typename T>
absl::Status General(KernelContext& context, const DenseLibrary& dense,
                     bool vectors, int64_t n, int64_t count, T* a,
                     Complex<T>* w, T* v, int32_t* info) {
  constexpr cudaDataType kData = DenseType<T>::kData;
  constexpr cudaDataType kValues = DenseType<Complex<T>>::kData;
  const cusolverEigMode_t none = CUSOLVER_EIG_MODE_NOVECTOR;
  const cusolverEigMode_t mode = ModeOf(vectors);
  DenseWork work;
  absl::Status s =
      dense.Told(dense.cusolverDnXgeev_bufferSize(
                     dense.solver, dense.params, none, mode, n, kData, a, n,
                     kValues, w, kData, nullptr, n, kData, v, n, kData,
                     &work.device_bytes, &work.host_bytes),
                 "cusolverDnXgeev_bufferSize");
  if (s.ok()) s = work.Allocate(context);
  for (int64_t i = 0; i < count && s.ok(); ++i) {
    s = dense.Told(
        dense.cusolverDnXgeev(
            dense.solver, dense.params, none, mode, n, kData, a + i * n * n, n,
            kValues, w + i * n, kData, nullptr, n, kData,
            vectors ? v + i * n * n : nullptr, n, kData, work.device,
            work.device_bytes, work.host.data(), work.host_bytes, info + i),
        "cusolverDnXgeev");
    if (s.ok()) s = work.Release(context);
  }
  return s;
}

}  // namespace

absl::Status SymmetricEigen(KernelContext& context, DType dtype, bool vectors,
                            bool upper, int64_t n, int64_t count, void* a,
                            void* w, int32_t* info) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  const SymmetricCall call = {
      context, **dense, ModeOf(vectors),
      upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER, n};
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run =
        count > 1 && n < kLargeOrder ? EigenOfMany<T> : EigenOfEach<T>;
    return run(call, count, static_cast<T*>(a), static_cast<T*>(w), info);
  });
}

absl::Status SingularValues(KernelContext& context, DType dtype,
                            const SingularShape& shape, int64_t count,
                            const void* a, void* s, void* u, void* v,
                            int32_t* info) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  const SingularCall call = {context, **dense, shape, count};
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Singular<T>(call, static_cast<const T*>(a), static_cast<T*>(s),
                       static_cast<T*>(u), static_cast<T*>(v), info);
  });
}

absl::Status GeneralEigen(KernelContext& context, DType dtype, bool vectors,
                          int64_t n, int64_t count, void* a, void* w, void* v,
                          int32_t* info) {
  absl::StatusOr<const DenseLibrary*> dense = DenseOf(context);
  if (!dense.ok()) return dense.status();
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return General<T>(context, **dense, vectors, n, count, static_cast<T*>(a),
                      static_cast<Complex<T>*>(w), static_cast<T*>(v), info);
  });
}

}  // namespace holdfast::cuda
