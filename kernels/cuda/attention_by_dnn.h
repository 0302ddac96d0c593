// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradients by cuDNN's graphs (dnn_attention.h), of 16-bit
// floats. Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_ATTENTION_BY_DNN_H_
#define HOLDFAST_KERNELS_CUDA_ATTENTION_BY_DNN_H_

#include "absl/types/span.h"
#include "kernels/attention_shape.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

// The ops' inputs and outputs. False where cuDNN is missing or has no plan:
// then nothing was done. REQUIRES: on a device.
bool AttentionByDnn(KernelContext& context, const AttentionShape& a,
                    absl::Span<const TensorView> inputs,
                    absl::Span<const TensorView> outputs);
bool AttentionBackwardByDnn(KernelContext& context, const AttentionShape& a,
                            absl::Span<const TensorView> inputs,
                            absl::Span<const TensorView> outputs);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_ATTENTION_BY_DNN_H_
