// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RandomDraws: where the random numbers of a launch begin, which a recording
// (kernels/recorder.h) learns anew each time it is replayed.
// Thread-safety: plain values.
#ifndef HOLDFAST_KERNELS_CUDA_RANDOM_DRAWS_H_
#define HOLDFAST_KERNELS_CUDA_RANDOM_DRAWS_H_

#include "kernels/cuda/cuda_context.h"
#include "ops/host_device.h"

namespace holdfast::cuda {

class RandomDraws {
 public:
  explicit RandomDraws(KernelContext& context)
      : own_(context.philox), first_(Cuda(context).first_draw) {}

  HOLDFAST_HD PhiloxState state() const {
    if (first_ == nullptr) return own_;
    return {first_->seed, first_->offset + own_.offset};
  }

 private:
  PhiloxState own_;
  const PhiloxState* first_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_RANDOM_DRAWS_H_
