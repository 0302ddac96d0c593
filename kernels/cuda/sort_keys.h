// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys that sort as values do. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CUDA_SORT_KEYS_H_
#define HOLDFAST_KERNELS_CUDA_SORT_KEYS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/host_device.h"

namespace holdfast::cuda {

// Unsigned numbers in the order of T's values. NaN, whatever its sign, is the
// greatest; -0 and 0 are equal.
template <typename T>
HOLDFAST_HD uint64_t SortKeyOf(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    const double x = value == T(0) ? 0.0 : static_cast<double>(value);
    if (x != x) return ~uint64_t{0};
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    constexpr uint64_t kSign = uint64_t{1} << 63;
    return bits & kSign ? ~bits : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value)) ^
           (uint64_t{1} << 63);
  } else {
    return static_cast<uint64_t>(value);
  }
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_SORT_KEYS_H_
