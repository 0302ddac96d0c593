// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// rnn_layer and its gradient by cuDNN (dnn_rnn.h): tensors are made contiguous,
// and the rows of a layer that runs from the last step to the first are turned.
//
// Who computes the gradient must be who computed the layer, since only he can
// read what it saved: the number of elements of the reserve is odd where it is
// cuDNN's. Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_RECURRENT_BY_DNN_H_
#define HOLDFAST_KERNELS_CUDA_RECURRENT_BY_DNN_H_

#include "absl/status/statusor.h"
#include "kernels/cuda/dnn_rnn.h"
#include "kernels/kernel.h"

namespace holdfast::cuda {

inline bool IsDnnReserve(const TensorSpec& reserve) {
  return reserve.numel() % 2 == 1;
}

// Elements of the reserve of a layer of these inputs, if its own kernels need
// `own`: cuDNN may refuse later what it takes now.
int64_t DnnReserve(DnnRecurrent& library, KernelContext& context,
                   const Attrs& attrs, absl::Span<const TensorView> inputs,
                   int64_t own);

// As the kernel functions; false where own kernels have to do it.
absl::StatusOr<bool> LayerByDnn(DnnRecurrent& library, KernelContext& context,
                                const Attrs& attrs,
                                absl::Span<const TensorView> inputs,
                                absl::Span<const TensorView> outputs);
// REQUIRES: the reserve is cuDNN's.
absl::StatusOr<bool> LayerBackwardByDnn(DnnRecurrent& library,
                                        KernelContext& context,
                                        const Attrs& attrs,
                                        absl::Span<const TensorView> inputs,
                                        absl::Span<const TensorView> outputs);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_RECURRENT_BY_DNN_H_
