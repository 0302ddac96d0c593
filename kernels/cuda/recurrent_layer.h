// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers by own kernels: for each step a product with the hidden
// weights and one launch over all units of all samples. The gradients of the
// weights are one product each over all rows at the end.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_RECURRENT_LAYER_H_
#define HOLDFAST_KERNELS_CUDA_RECURRENT_LAYER_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/recurrent_steps.h"

namespace holdfast::cuda {

// Indices of rnn_layer's inputs; rnn_layer_backward's have three gradients
// before them and these after.
enum RnnLayerInput {
  kRnnInput,
  kRnnBatchSizes,
  kRnnH0,
  kRnnC0,
  kRnnWeightIh,
  kRnnWeightHh,
  kRnnBiasIh,
  kRnnBiasHh,
  kRnnLayerInputs
};
inline constexpr int kRnnGrads = 3;
inline constexpr int kRnnOutput = kRnnGrads + kRnnLayerInputs;
inline constexpr int kRnnReserve = kRnnOutput + 1;
inline constexpr int kRnnBackwardInputs = kRnnReserve + 1;

// `layer`: rnn_layer's inputs. Waits where rows are packed.
absl::Status ReadRecurrentSteps(KernelContext& context, const Attrs& attrs,
                                absl::Span<const TensorView> layer,
                                RecurrentSteps* steps);

// Kernel functions of rnn_layer and rnn_layer_backward for float32 and float64.
// The reserve may be larger than what they fill, if its size is odd.
absl::Status OwnRecurrentLayer(KernelContext& context, const Attrs& attrs,
                               absl::Span<const TensorView> inputs,
                               absl::Span<const TensorView> outputs);
absl::Status OwnRecurrentLayerBackward(KernelContext& context,
                                       const Attrs& attrs,
                                       absl::Span<const TensorView> inputs,
                                       absl::Span<const TensorView> outputs);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_RECURRENT_LAYER_H_
