// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Declares Cpu_<op>, and Cpu_<op>_sizes for ops of unknown sizes, for every row
// of the op table, for the kernel table and tests. Kernels themselves do
// without (see cpu_kernels.h).
#ifndef HOLDFAST_KERNELS_CPU_KERNEL_SYMBOLS_H_
#define HOLDFAST_KERNELS_CPU_KERNEL_SYMBOLS_H_

#include "kernels/kernel.h"

namespace holdfast::cpu {

#define OP(name, signature, infer, flags, since, doc)                         \
  absl::Status Cpu_##name(KernelContext& context, const Attrs& attrs,         \
                          absl::Span<const TensorView> inputs,                \
                          absl::Span<const TensorView> outputs);              \
  absl::Status Cpu_##name##_sizes(KernelContext& context, const Attrs& attrs, \
                                  absl::Span<const TensorView> inputs,        \
                                  absl::Span<int64_t> sizes);
#include "ops/ops.def"
#undef OP

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_KERNEL_SYMBOLS_H_
