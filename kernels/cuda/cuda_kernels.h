// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CUDA kernels, one function Cuda_<op> per row of the op table, in a file
// of the same name as the CPU's. A row may lack one: such ops run on the host
// (host_ops.h), MissingCudaOps lists them, and tests/test_cuda_library.py knows
// how many they are, so that the number only goes down.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_KERNELS_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_KERNELS_H_

#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace holdfast {

struct KernelTable;  // kernels/kernel_table.h

namespace cuda {

// Opens the definition of a kernel function.
#define HOLDFAST_CUDA_KERNEL(name)                          \
  absl::Status Cuda_##name(                                 \
      [[maybe_unused]] KernelContext& context,              \
      [[maybe_unused]] const Attrs& attrs,                  \
      [[maybe_unused]] absl::Span<const TensorView> inputs, \
      [[maybe_unused]] absl::Span<const TensorView> outputs)

// Opens the definition of the SizesFn of an op of unknown sizes.
#define HOLDFAST_CUDA_SIZES(name)                           \
  absl::Status Cuda_##name##_sizes(                         \
      [[maybe_unused]] KernelContext& context,              \
      [[maybe_unused]] const Attrs& attrs,                  \
      [[maybe_unused]] absl::Span<const TensorView> inputs, \
      [[maybe_unused]] absl::Span<int64_t> sizes)

// Null where there is no kernel, and for views.
const KernelTable& CudaKernels();

// Ops without a kernel that need one, in the table's order.
std::vector<std::string> MissingCudaOps();

// Runs an op: the kernel itself, the CPU's where there is none, or, for types
// that it does not compute in, around conversions (widened.h).
absl::Status RunCudaOp(KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> inputs,
                       absl::Span<const TensorView> outputs);
// The SizesFn of an op of unknown sizes.
absl::Status RunCudaSizes(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> inputs,
                          absl::Span<int64_t> sizes);

}  // namespace cuda
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_KERNELS_H_
