// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DenseLibrary: cuSOLVER and cuBLAS as far as dense_solver.h needs them.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_DENSE_LIBRARY_H_
#define HOLDFAST_KERNELS_CUDA_DENSE_LIBRARY_H_

#include <cublas_api.h>
#include <cusolverDn.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace holdfast::cuda {

// X(function): what is called of each library.
#define HOLDFAST_TRIANGULAR_FUNCTIONS(X) \
  X(cublasCreate_v2)                     \
  X(cublasDestroy_v2)                    \
  X(cublasGetStatusString)               \
  X(cublasSetStream_v2)                  \
  X(cublasSgetrfBatched)                 \
  X(cublasDgetrfBatched)                 \
  X(cublasCgetrfBatched)                 \
  X(cublasZgetrfBatched)                 \
  X(cublasStrsm_v2_64)                   \
  X(cublasDtrsm_v2_64)                   \
  X(cublasCtrsm_v2_64)                   \
  X(cublasZtrsm_v2_64)                   \
  X(cublasStrsmBatched_64)               \
  X(cublasDtrsmBatched_64)               \
  X(cublasCtrsmBatched_64)               \
  X(cublasZtrsmBatched_64)
#define HOLDFAST_SOLVER_FUNCTIONS(X)     \
  X(cusolverDnCreate)                    \
  X(cusolverDnDestroy)                   \
  X(cusolverDnSetStream)                 \
  X(cusolverDnCreateParams)              \
  X(cusolverDnDestroyParams)             \
  X(cusolverDnCreateGesvdjInfo)          \
  X(cusolverDnDestroyGesvdjInfo)         \
  X(cusolverDnSpotrfBatched)             \
  X(cusolverDnDpotrfBatched)             \
  X(cusolverDnSorgqr)                    \
  X(cusolverDnDorgqr)                    \
  X(cusolverDnSorgqr_bufferSize)         \
  X(cusolverDnDorgqr_bufferSize)         \
  X(cusolverDnSgesvdj)                   \
  X(cusolverDnDgesvdj)                   \
  X(cusolverDnSgesvdj_bufferSize)        \
  X(cusolverDnDgesvdj_bufferSize)        \
  X(cusolverDnSgesvdjBatched)            \
  X(cusolverDnDgesvdjBatched)            \
  X(cusolverDnSgesvdjBatched_bufferSize) \
  X(cusolverDnDgesvdjBatched_bufferSize) \
  X(cusolverDnXpotrf)                    \
  X(cusolverDnXpotrf_bufferSize)         \
  X(cusolverDnXgetrf)                    \
  X(cusolverDnXgetrf_bufferSize)         \
  X(cusolverDnXgeqrf)                    \
  X(cusolverDnXgeqrf_bufferSize)         \
  X(cusolverDnXsyevd)                    \
  X(cusolverDnXsyevd_bufferSize)         \
  X(cusolverDnXsyevBatched)              \
  X(cusolverDnXsyevBatched_bufferSize)   \
  X(cusolverDnXgesvd)                    \
  X(cusolverDnXgesvd_bufferSize)         \
  X(cusolverDnXgeev)                     \
  X(cusolverDnXgeev_bufferSize)

// Empty until CudaLibraries::dense fills it in.
struct DenseLibrary {
#define X(function) decltype(&::function) function = nullptr;
  HOLDFAST_TRIANGULAR_FUNCTIONS(X)
  HOLDFAST_SOLVER_FUNCTIONS(X)
#undef X
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t params = nullptr;
  gesvdjInfo_t jacobi = nullptr;  // tolerance and sweeps: cuSOLVER's defaults

  DenseLibrary() = default;
  ~DenseLibrary();
  DenseLibrary(const DenseLibrary&) = delete;
  DenseLibrary& operator=(const DenseLibrary&) = delete;

  // Makes the handles, of the thread's GPU. REQUIRES: the functions.
  absl::Status MakeHandles();

  // "[cuda] WHAT: CUSOLVER_STATUS_INVALID_VALUE."
  absl::Status Told(cusolverStatus_t status, absl::string_view what) const;
  absl::Status Told(cublasStatus_t status, absl::string_view what) const;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DENSE_LIBRARY_H_
