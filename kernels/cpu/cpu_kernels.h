// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU kernels, one Cpu_<op> per row of the op table that is not a view.
// A row without its kernel does not link. Does not name the ops, so that a new
// row does not compile every kernel again.
#ifndef HOLDFAST_KERNELS_CPU_CPU_KERNELS_H_
#define HOLDFAST_KERNELS_CPU_CPU_KERNELS_H_

#include "kernels/kernel.h"

namespace holdfast {

struct KernelTable;  // kernels/kernel_table.h

namespace cpu {

// Opens the definition of a kernel.
#define HOLDFAST_CPU_KERNEL(name)                           \
  absl::Status Cpu_##name(                                  \
      [[maybe_unused]] KernelContext& context,              \
      [[maybe_unused]] const Attrs& attrs,                  \
      [[maybe_unused]] absl::Span<const TensorView> inputs, \
      [[maybe_unused]] absl::Span<const TensorView> outputs)

// Opens the definition of the SizesFn of an op of unknown sizes.
#define HOLDFAST_CPU_SIZES(name)                            \
  absl::Status Cpu_##name##_sizes(                          \
      [[maybe_unused]] KernelContext& context,              \
      [[maybe_unused]] const Attrs& attrs,                  \
      [[maybe_unused]] absl::Span<const TensorView> inputs, \
      [[maybe_unused]] absl::Span<int64_t> sizes)

const KernelTable& CpuKernels();

}  // namespace cpu
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CPU_CPU_KERNELS_H_
