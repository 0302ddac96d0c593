// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the device, for every op that needs some (matmul.cc).
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_RUN_PRODUCTS_H_
#define HOLDFAST_KERNELS_CUDA_RUN_PRODUCTS_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/products.h"

namespace holdfast::cuda {

// out = a b, or out + a b with `add`, for all of the batch; integers wrap.
// Operands and result are of one type; the result is contiguous.
absl::Status RunProducts(KernelContext& context, const Products& p,
                         const TensorView& a, const TensorView& b, bool add,
                         const TensorView& out);

// output = input weight^T + bias, as `linear`; `bias` may be absent.
absl::Status Linear(KernelContext& context, const TensorView& input,
                    const TensorView& weight, const TensorView& bias,
                    const TensorView& output);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_RUN_PRODUCTS_H_
