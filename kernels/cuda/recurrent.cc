// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// rnn_layer and its gradient: by cuDNN where it is there and knows how
// (recurrent_by_dnn.h), else by own kernels (recurrent_layer.h).
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/recurrent_layer.h"
#include "kernels/widened.h"

#if defined(__CUDACC__)
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/recurrent_by_dnn.h"
#endif

namespace holdfast::cuda {
namespace {

using Views = absl::Span<const TensorView>;

// Own kernels do not know 16-bit floats.
absl::Status RunOwn(KernelFn kernel, KernelContext& context, const Attrs& attrs,
                    Views inputs, Views outputs) {
  return NeedsWidening(inputs, outputs)
             ? RunWidened(kernel, &CudaCopy, context, attrs, inputs, outputs)
             : kernel(context, attrs, inputs, outputs);
}

#if defined(__CUDACC__)

// Null where there is none.
DnnRecurrent* Library(KernelContext& context) {
  int device = 0;
  DnnDeviceTraits traits;
  if (cudaGetDevice(&device) == cudaSuccess) {
    cudaDeviceGetAttribute(&traits.major, cudaDevAttrComputeCapabilityMajor,
                           device);
    cudaDeviceGetAttribute(&traits.processors, cudaDevAttrMultiProcessorCount,
                           device);
  }
  return Cuda(context).libraries().dnn_recurrent(traits);
}

// For a layer that nobody has begun. cuDNN does not promise results that repeat
// bit by bit.
DnnRecurrent* LibraryForNew(KernelContext& context) {
  const Numerics& numerics = Cuda(context).numerics;
  if (!numerics.cudnn || numerics.deterministic) return nullptr;
  return Library(context);
}

#endif

}  // namespace

HOLDFAST_CUDA_SIZES(rnn_layer) {
  // None is asked for without `save`.
  if (sizes.empty()) return absl::OkStatus();
  sizes[0] =
      RecurrentReserve(attrs, *inputs[kRnnInput].spec, *inputs[kRnnH0].spec);
#if defined(__CUDACC__)
  if (DnnRecurrent* const library = LibraryForNew(context)) {
    sizes[0] = DnnReserve(*library, context, attrs, inputs, sizes[0]);
  }
#endif
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(rnn_layer) {
#if defined(__CUDACC__)
  // Where something is saved, its size has been chosen for one or the other.
  const TensorSpec& reserve = *outputs[3].spec;
  DnnRecurrent* const library = IsDnnReserve(reserve)  ? Library(context)
                                : reserve.numel() == 0 ? LibraryForNew(context)
                                                       : nullptr;
  if (library != nullptr) {
    absl::StatusOr<bool> done =
        LayerByDnn(*library, context, attrs, inputs, outputs);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
  }
#endif
  return RunOwn(&OwnRecurrentLayer, context, attrs, inputs, outputs);
}

HOLDFAST_CUDA_KERNEL(rnn_layer_backward) {
#if defined(__CUDACC__)
  DnnRecurrent* const library =
      IsDnnReserve(*inputs[kRnnReserve].spec) ? Library(context) : nullptr;
  if (library != nullptr) {
    absl::StatusOr<bool> done =
        LayerBackwardByDnn(*library, context, attrs, inputs, outputs);
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
  }
#endif
  return RunOwn(&OwnRecurrentLayerBackward, context, attrs, inputs, outputs);
}

}  // namespace holdfast::cuda
