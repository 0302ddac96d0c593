// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_complex.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/elementwise.h"

namespace holdfast::cpu {
namespace {

template <typename Op>
absl::Status Run(KernelContext& context, absl::Span<const TensorView> in,
                 absl::Span<const TensorView> out) {
  if (std::is_same_v<Op, elementwise::op::abs> &&
      IsComplex(in[0].spec->dtype)) {
    RunComplexAbs(context, in[0], out[0]);
    return absl::OkStatus();
  }
  return RunUnary(kUnaryTable<Op>, context, in, out);
}

}  // namespace

#define HOLDFAST_UNARY_KERNEL(name, types, expression)           \
  HOLDFAST_CPU_KERNEL(name) {                                    \
    return Run<elementwise::op::name>(context, inputs, outputs); \
  }
HOLDFAST_UNARY_OPS(HOLDFAST_UNARY_KERNEL)
HOLDFAST_UNARY_PREDICATES(HOLDFAST_UNARY_KERNEL)
#undef HOLDFAST_UNARY_KERNEL

}  // namespace holdfast::cpu
