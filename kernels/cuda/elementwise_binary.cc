// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/divisor_check.h"
#include "kernels/cuda/elementwise.h"

namespace holdfast::cuda {
namespace {

template <typename Op>
absl::Status Run(KernelContext& context, const Attrs& attrs,
                 absl::Span<const TensorView> in, const TensorView& out) {
  if (std::is_same_v<Op, elementwise::op::floor_divide> ||
      std::is_same_v<Op, elementwise::op::remainder>) {
    absl::Status s = RefuseZeroDivisor(context, attrs, in, out);
    if (!s.ok()) return s;
  }
  return RunBinary<Op>(context, attrs, in, out);
}

}  // namespace

#define HOLDFAST_BINARY_KERNEL(name, types, expression)                    \
  HOLDFAST_CUDA_KERNEL(name) {                                             \
    return Run<elementwise::op::name>(context, attrs, inputs, outputs[0]); \
  }
HOLDFAST_BINARY_OPS(HOLDFAST_BINARY_KERNEL)
#undef HOLDFAST_BINARY_KERNEL

}  // namespace holdfast::cuda
