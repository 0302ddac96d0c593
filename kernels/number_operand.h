// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A number passed for an operand reaches kernels as a rank-0 view of the
// computation type whose data is host memory, whatever the device, and there
// until the kernel function returns. Its spec's offset, which kernels do not
// otherwise use, says so. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_NUMBER_OPERAND_H_
#define HOLDFAST_KERNELS_NUMBER_OPERAND_H_

#include <cstdint>

#include "kernels/kernel.h"

namespace holdfast {

inline constexpr int64_t kNumberOffset = -1;

inline bool IsNumber(const TensorView& view) {
  return view.spec->offset == kNumberOffset;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_NUMBER_OPERAND_H_
