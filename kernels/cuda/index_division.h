// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Indices of one launch in 32 bits where they fit, divided by multiplication;
// in 64 bits otherwise, divided as C++ does.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_
#define HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cuda/fast_divisor.h"
#include "ops/host_device.h"

namespace holdfast {

template <typename Index>
class Division;

template <>
class Division<uint32_t> {
 public:
  using Parts = FastDivisor::Parts;

  // A divisor of 0 is that of an empty tensor, where nothing is divided.
  explicit Division(int64_t divisor)
      : fast_(static_cast<uint32_t>(std::clamp<int64_t>(
            divisor, 1, std::numeric_limits<int32_t>::max()))) {}

  HOLDFAST_HD uint32_t Divide(uint32_t n) const { return fast_.Divide(n); }
  HOLDFAST_HD Parts Split(uint32_t n) const { return fast_.Split(n); }

 private:
  FastDivisor fast_;
};

template <>
class Division<int64_t> {
 public:
  struct Parts {
    int64_t quotient, rest;
  };

  explicit Division(int64_t divisor) : divisor_(divisor) {}

  HOLDFAST_HD int64_t Divide(int64_t n) const { return n / divisor_; }
  HOLDFAST_HD Parts Split(int64_t n) const {
    const int64_t quotient = n / divisor_;
    return {quotient, n - quotient * divisor_};
  }

 private:
  int64_t divisor_;
};

// fn(type of indices below `limit`).
template <typename F>
inline auto DispatchIndex(int64_t limit, F&& fn)
    -> decltype(fn(TypeTag<uint32_t>{})) {
  if (limit <= std::numeric_limits<int32_t>::max()) {
    return fn(TypeTag<uint32_t>{});
  }
  return fn(TypeTag<int64_t>{});
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_
