// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dense_library.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace holdfast::cuda {
namespace {

std::string NameOf(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_NOT_SUPPORTED";
    default:
      return absl::StrCat("error ", static_cast<int>(status));
  }
}

absl::Status Failed(bool no_memory, absl::string_view what,
                    absl::string_view status) {
  const std::string text = absl::StrCat("[cuda] ", what, ": ", status, ".");
  return no_memory ? absl::ResourceExhaustedError(text + " Free tensors.")
                   : absl::InternalError(text);
}

}  // namespace

DenseLibrary::~DenseLibrary() {
  if (jacobi != nullptr) cusolverDnDestroyGesvdjInfo(jacobi);
  if (params != nullptr) cusolverDnDestroyParams(params);
  if (solver != nullptr) cusolverDnDestroy(solver);
  if (blas != nullptr) cublasDestroy_v2(blas);
}

// What a call that failed leaves in a handle is none.
absl::Status DenseLibrary::MakeHandles() {
  absl::Status s = Told(cublasCreate_v2(&blas), "cublasCreate");
  if (!s.ok()) {
    blas = nullptr;
    return s;
  }
  s = Told(cusolverDnCreate(&solver), "cusolverDnCreate");
  if (!s.ok()) {
    solver = nullptr;
    return s;
  }
  s = Told(cusolverDnCreateParams(&params), "cusolverDnCreateParams");
  if (!s.ok()) {
    params = nullptr;
    return s;
  }
  s = Told(cusolverDnCreateGesvdjInfo(&jacobi), "cusolverDnCreateGesvdjInfo");
  if (!s.ok()) jacobi = nullptr;
  return s;
}

absl::Status DenseLibrary::Told(cusolverStatus_t status,
                                absl::string_view what) const {
  if (status == CUSOLVER_STATUS_SUCCESS) return absl::OkStatus();
  return Failed(status == CUSOLVER_STATUS_ALLOC_FAILED, what, NameOf(status));
}

absl::Status DenseLibrary::Told(cublasStatus_t status,
                                absl::string_view what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return Failed(status == CUBLAS_STATUS_ALLOC_FAILED, what,
                cublasGetStatusString(status));
}

}  // namespace holdfast::cuda
