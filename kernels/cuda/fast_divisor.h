// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FastDivisor: division by a number that many threads share. GPUs have no
// instruction for whole numbers' division; a product, an addition and a shift
// do it (Granlund & Montgomery 1994, "Division by Invariant Integers using
// Multiplication").
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_
#define HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_

#include <cstdint>

#include "ops/host_device.h"

namespace holdfast {

class FastDivisor {
 public:
  struct Parts {
    uint32_t quotient, rest;
  };

  FastDivisor() = default;  // by 1
  // REQUIRES: 0 < divisor < 2^31.
  explicit FastDivisor(uint32_t divisor) : divisor_(divisor) {
    while ((uint32_t{1} << shift_) < divisor) ++shift_;
    const uint64_t power = uint64_t{1} << shift_;
    factor_ =
        static_cast<uint32_t>(((power - divisor) << 32) / divisor + 1);
  }

  // REQUIRES: n < 2^31.
  HOLDFAST_HD uint32_t Divide(uint32_t n) const {
    const uint32_t high =
        static_cast<uint32_t>(static_cast<uint64_t>(n) * factor_ >> 32);
    return (high + n) >> shift_;
  }
  HOLDFAST_HD Parts Split(uint32_t n) const {
    const uint32_t quotient = Divide(n);
    return {quotient, n - quotient * divisor_};
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t factor_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_
