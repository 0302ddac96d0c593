// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What CUDA's functions return, as absl::Status. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast {

// `what`: "cudaMalloc".
inline absl::Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text =
      absl::StrCat("[cuda] ", what, ": ", cudaGetErrorString(error), " (",
                   cudaGetErrorName(error), ").");
  return error == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(text)
                                            : absl::InternalError(text);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_ERROR_H_
