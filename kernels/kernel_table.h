// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// KernelTable: the kernels of one device.
#ifndef HOLDFAST_KERNELS_KERNEL_TABLE_H_
#define HOLDFAST_KERNELS_KERNEL_TABLE_H_

#include "kernels/kernel.h"
#include "ops/op_id.h"

namespace holdfast {

// By OpId; null for views. The CPU's is CpuKernels()
// (kernels/cpu/cpu_kernels.h); CUDA's comes from its library.
struct KernelTable {
  KernelFn kernels[kNumOps];
  SizesFn sizes[kNumOps];  // null but for ops of unknown sizes
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_KERNEL_TABLE_H_
