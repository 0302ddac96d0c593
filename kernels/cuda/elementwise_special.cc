// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__CUDACC__)
// The rows compare with 0 for types without negative numbers, too.
#pragma nv_diag_suppress 186
#endif

#include "kernels/elementwise_special.h"

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/divisor_check.h"
#include "kernels/cuda/elementwise.h"

namespace holdfast::cuda {
namespace {

template <typename Op>
absl::Status Binary(KernelContext& context, const Attrs& attrs,
                    absl::Span<const TensorView> in, const TensorView& out) {
  if (std::is_same_v<Op, elementwise::special::fmod>) {
    absl::Status s = RefuseZeroDivisor(context, attrs, in, out);
    if (!s.ok()) return s;
  }
  return RunBinary<Op>(context, attrs, in, out);
}

}  // namespace

#define HOLDFAST_UNARY_KERNEL(name, types, expression)              \
  HOLDFAST_CUDA_KERNEL(name) {                                      \
    return RunUnary<elementwise::special::name>(context, inputs[0], \
                                                outputs[0]);        \
  }
#define HOLDFAST_BINARY_KERNEL(name, types, expression)               \
  HOLDFAST_CUDA_KERNEL(name) {                                        \
    return Binary<elementwise::special::name>(context, attrs, inputs, \
                                              outputs[0]);            \
  }
HOLDFAST_SPECIAL_UNARY_OPS(HOLDFAST_UNARY_KERNEL)
HOLDFAST_SPECIAL_BINARY_OPS(HOLDFAST_BINARY_KERNEL)
#undef HOLDFAST_UNARY_KERNEL
#undef HOLDFAST_BINARY_KERNEL

}  // namespace holdfast::cuda
