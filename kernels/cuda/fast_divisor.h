// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FastDivisor, WideDivisor: division by a number that many threads share. GPUs
// have no instruction for whole numbers' division; a product, an addition and a
// shift do it (Granlund & Montgomery 1994, "Division by Invariant Integers
// using Multiplication"). Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_
#define HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_

#include <cstdint>

#include "ops/host_device.h"

namespace holdfast::cuda {

// The upper half of a product.
HOLDFAST_HD uint32_t UpperProduct(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
}
HOLDFAST_HD uint64_t UpperProduct(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

// Word: uint32_t or uint64_t.
template <typename Word>
class FastDivisorOf {
 public:
  struct Parts {
    Word quotient, rest;
  };

  FastDivisorOf() = default;  // by 1
  // What factor() and shift() of the divisor's were.
  HOLDFAST_HD FastDivisorOf(Word divisor, Word factor, int shift)
      : divisor_(divisor), factor_(factor), shift_(shift) {}
  // REQUIRES: 0 < divisor, and its highest bit is not set.
  explicit FastDivisorOf(Word divisor) : divisor_(divisor) {
    while ((Word{1} << shift_) < divisor) ++shift_;
    const unsigned __int128 rest = (Word{1} << shift_) - divisor;
    factor_ = static_cast<Word>((rest << (8 * sizeof(Word))) / divisor + 1);
  }

  Word factor() const { return factor_; }
  int shift() const { return shift_; }

  // REQUIRES: n's highest bit is not set.
  HOLDFAST_HD Word Divide(Word n) const {
    return (UpperProduct(n, factor_) + n) >> shift_;
  }
  HOLDFAST_HD Parts Split(Word n) const {
    const Word quotient = Divide(n);
    return {quotient, n - quotient * divisor_};
  }

 private:
  Word divisor_ = 1;
  Word factor_ = 1;
  int shift_ = 0;
};

using FastDivisor = FastDivisorOf<uint32_t>;
using WideDivisor = FastDivisorOf<uint64_t>;

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_FAST_DIVISOR_H_
