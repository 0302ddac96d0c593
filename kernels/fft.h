// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What devices share of Fourier transforms. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_FFT_H_
#define HOLDFAST_KERNELS_FFT_H_

#include <cstdint>
#include <vector>

#include "ops/op_schema.h"

namespace holdfast {

// Of complex numbers, or between n real ones and n / 2 + 1 complex ones.
enum class FftKind { kForward, kBackward, kRealToComplex, kComplexToReal };

// The attribute `dim`, counted from the front.
inline std::vector<int> FftDims(const Attrs& attrs, int rank) {
  std::vector<int> dims;
  for (int64_t dim : attrs.Ints("dim")) {
    dims.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  }
  return dims;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_FFT_H_
