// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// rnn_layer and its gradient, by own kernels (recurrent_layer.h).
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/recurrent_layer.h"
#include "kernels/widened.h"

namespace holdfast {
namespace {

using Views = absl::Span<const TensorView>;

// Own kernels do not know 16-bit floats.
absl::Status RunOwn(KernelFn kernel, KernelContext& context, const Attrs& attrs,
                    Views inputs, Views outputs) {
  return NeedsWidening(inputs, outputs)
             ? RunWidened(kernel, &CudaCopy, context, attrs, inputs, outputs)
             : kernel(context, attrs, inputs, outputs);
}

}  // namespace

HOLDFAST_CUDA_SIZES(rnn_layer) {
  // None is asked for without `save`.
  if (sizes.empty()) return absl::OkStatus();
  const TensorSpec& input = *inputs[kRnnInput].spec;
  sizes[0] = RecurrentReserve(attrs, input, *inputs[kRnnH0].spec);
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(rnn_layer) {
  return RunOwn(&OwnRecurrentLayer, context, attrs, inputs, outputs);
}

HOLDFAST_CUDA_KERNEL(rnn_layer_backward) {
  return RunOwn(&OwnRecurrentLayerBackward, context, attrs, inputs, outputs);
}

}  // namespace holdfast
