// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FftPlans: cuFFT and its plans, which take milliseconds to make and are kept.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_FFT_PLANS_H_
#define HOLDFAST_KERNELS_CUDA_FFT_PLANS_H_

#include <cufft.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "absl/status/statusor.h"

namespace holdfast::cuda {

// X(function): what is called of the library.
#define HOLDFAST_FFT_FUNCTIONS(X) \
  X(cufftCreate)                  \
  X(cufftDestroy)                 \
  X(cufftExecC2C)                 \
  X(cufftExecC2R)                 \
  X(cufftExecD2Z)                 \
  X(cufftExecR2C)                 \
  X(cufftExecZ2D)                 \
  X(cufftExecZ2Z)                 \
  X(cufftMakePlanMany64)          \
  X(cufftSetAutoAllocation)       \
  X(cufftSetStream)               \
  X(cufftSetWorkArea)

struct FftLibrary {
#define X(function) decltype(&::function) function = nullptr;
  HOLDFAST_FFT_FUNCTIONS(X)
#undef X
};

// "[cuda] WHAT: CUFFT_SETUP_FAILED."
absl::Status FftStatus(cufftResult result, const char* what);

class FftPlans {
 public:
  // `library` must outlive it.
  explicit FftPlans(const FftLibrary& library) : library_(library) {}
  ~FftPlans() { DropAll(); }
  FftPlans(const FftPlans&) = delete;
  FftPlans& operator=(const FftPlans&) = delete;

  struct Plan {
    cufftHandle handle;
    size_t work_bytes;  // that a call needs
  };
  // For `rows` contiguous rows of `n` points; until the next call.
  absl::StatusOr<Plan> Find(cufftType type, int64_t n, int64_t rows);

  const FftLibrary& library() const { return library_; }
  // Counts the times that plans were thrown away.
  uint64_t dropped() const { return dropped_; }

 private:
  void DropAll();

  const FftLibrary& library_;
  std::map<std::tuple<int, int64_t, int64_t>, Plan> plans_;
  uint64_t dropped_ = 0;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_FFT_PLANS_H_
