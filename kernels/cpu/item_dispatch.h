// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// For kernels that move elements without looking at them: an unsigned integer
// as wide as the element, instead of its type.
// Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CPU_ITEM_DISPATCH_H_
#define HOLDFAST_KERNELS_CPU_ITEM_DISPATCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/dtype_dispatch.h"
#include "ops/dtype.h"

namespace holdfast::cpu {

struct Item16 {
  uint64_t low, high;
};

// Returns fn(TypeTag<uintN_t>{}); Item16 for complex128.
template <typename F>
absl::Status DispatchItem(DType dtype, F&& fn) {
  switch (ItemSize(dtype)) {
    case 1:
      return fn(TypeTag<uint8_t>{});
    case 2:
      return fn(TypeTag<uint16_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    case 8:
      return fn(TypeTag<uint64_t>{});
    case 16:
      return fn(TypeTag<Item16>{});
    default:
      return UnsupportedDType<absl::Status>();
  }
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_ITEM_DISPATCH_H_
