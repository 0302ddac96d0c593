// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches of products by cuBLASLt. Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_BLAS_PRODUCT_H_
#define HOLDFAST_KERNELS_CUDA_BLAS_PRODUCT_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/products.h"

namespace holdfast::cuda {

// out = a b, or out + a b with `add`. Floats and complex numbers of one type;
// operands that BLAS cannot take as they lie are copied first.
// REQUIRES: no size is 0; on a device.
absl::Status BlasProducts(KernelContext& context, const Products& p,
                          const TensorView& a, const TensorView& b, bool add,
                          const TensorView& out);

// out = a b, with bias [n] added to each row on the way. Unimplemented where
// the library cannot: then nothing was done. REQUIRES: as above; one product;
// bias is contiguous, of the same type.
absl::Status BlasProductWithBias(KernelContext& context, const Products& p,
                                 const TensorView& a, const TensorView& b,
                                 const TensorView& bias, const TensorView& out);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_BLAS_PRODUCT_H_
