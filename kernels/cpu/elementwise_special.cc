// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise_special.h"

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_kernel.h"

namespace holdfast::cpu {
namespace {

template <typename Op>
absl::Status Binary(KernelContext& context, const Attrs& attrs,
                    absl::Span<const TensorView> in,
                    absl::Span<const TensorView> out) {
  if (std::is_same_v<Op, elementwise::special::fmod>) {
    absl::Status s = RefuseZeroDivisor(context, attrs, in, out);
    if (!s.ok()) return s;
  }
  return RunBinary(kBinaryTable<Op>, context, attrs, in, out);
}

}  // namespace

#define HOLDFAST_UNARY_KERNEL(name, types, expression)                        \
  HOLDFAST_CPU_KERNEL(name) {                                                 \
    return RunUnary(kUnaryTable<elementwise::special::name>, context, inputs, \
                    outputs);                                                 \
  }
#define HOLDFAST_BINARY_KERNEL(name, types, expression)               \
  HOLDFAST_CPU_KERNEL(name) {                                         \
    return Binary<elementwise::special::name>(context, attrs, inputs, \
                                              outputs);               \
  }
HOLDFAST_SPECIAL_UNARY_OPS(HOLDFAST_UNARY_KERNEL)
HOLDFAST_SPECIAL_BINARY_OPS(HOLDFAST_BINARY_KERNEL)
#undef HOLDFAST_UNARY_KERNEL
#undef HOLDFAST_BINARY_KERNEL

}  // namespace holdfast::cpu
