// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Indices of one launch, in 32 bits where they fit and in 64 bits otherwise,
// divided by multiplication.
// Thread-safety: plain values, pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_
#define HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/fast_divisor.h"
#include "kernels/dtype_dispatch.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

// Index: uint32_t or int64_t. What is divided is never negative.
template <typename Index>
class Division {
 public:
  using Word = std::make_unsigned_t<Index>;
  struct Parts {
    Index quotient, rest;
  };

  // A divisor of 0 is that of an empty tensor, where nothing is divided.
  explicit Division(int64_t divisor)
      : fast_(static_cast<Word>(std::clamp<int64_t>(
            divisor, 1,
            std::numeric_limits<std::make_signed_t<Index>>::max()))) {}

  HOLDFAST_HD Index Divide(Index n) const {
    return static_cast<Index>(fast_.Divide(static_cast<Word>(n)));
  }
  HOLDFAST_HD Parts Split(Index n) const {
    const auto parts = fast_.Split(static_cast<Word>(n));
    return {static_cast<Index>(parts.quotient), static_cast<Index>(parts.rest)};
  }

 private:
  FastDivisorOf<Word> fast_;
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

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_INDEX_DIVISION_H_
