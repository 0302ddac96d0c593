// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms of contiguous rows: cuFFT on a device (fft_rows.cc), the
// sum that defines them on the host (fft.cc). Thread-safety: as the context.
#ifndef HOLDFAST_KERNELS_CUDA_FFT_ROWS_H_
#define HOLDFAST_KERNELS_CUDA_FFT_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/fft.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// `rows` transforms of `n` points each; real numbers are of type `real`. Rows
// are n elements, and n / 2 + 1 where complex numbers stand for real ones.
struct FftRows {
  FftKind kind;
  DType real;
  int64_t n, rows;
};

// Unscaled. `out` may be `in` if both are complex; `in` may be overwritten.
// REQUIRES: no size is 0.
absl::Status TransformRows(KernelContext& context, const FftRows& fft, void* in,
                           void* out);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_FFT_ROWS_H_
