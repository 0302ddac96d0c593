// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops without a CUDA kernel, run by the CPU's: their inputs are copied to the
// host, their results back. Thread-safety: as the context.
#ifndef HOLDFAST_KERNELS_CUDA_HOST_OPS_H_
#define HOLDFAST_KERNELS_CUDA_HOST_OPS_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// Waits for the stream. REQUIRES: not an op whose sizes depend on data.
absl::Status RunOnHost(KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> inputs,
                       absl::Span<const TensorView> outputs);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_HOST_OPS_H_
