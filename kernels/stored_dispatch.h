// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a DType to the type that its elements are stored as, 16-bit floats and
// narrow integers included. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_STORED_DISPATCH_H_
#define HOLDFAST_KERNELS_STORED_DISPATCH_H_

#include "kernels/dtype_dispatch.h"
#include "ops/dtype.h"

namespace holdfast {

// All types as they are stored.
template <typename F>
inline auto DispatchStored(DType dtype, F&& fn)
    -> decltype(fn(TypeTag<float>{})) {
  switch (dtype) {
    case DType::kInt8:
      return fn(TypeTag<int8_t>{});
    case DType::kInt16:
      return fn(TypeTag<int16_t>{});
    case DType::kFloat16:
      return fn(TypeTag<Float16>{});
    case DType::kBFloat16:
      return fn(TypeTag<BFloat16>{});
    default:
      return DispatchWithComplex(dtype, fn);
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_STORED_DISPATCH_H_
