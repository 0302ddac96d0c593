// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What CUDA's functions return, as absl::Status. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast::cuda {

// Errors that destroy the process's state on the GPU: whatever is asked of it
// afterwards, in any stream, fails with the same one.
inline bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
      return true;
    default:
      return false;
  }
}

// `what` failed: "cudaMalloc".
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(
      "[cuda] ", what, ": ", cudaGetErrorString(error), " (",
      cudaGetErrorName(error), ").",
      IsSticky(error) ? " The daemon has lost the GPU with all that lay on it, "
                        "and starts again. Connect again."
                      : "");
  if (IsSticky(error)) return absl::DataLossError(text);
  return error == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text)
                                            : absl::InternalError(text);
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_
