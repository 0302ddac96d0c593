// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as problems for cuDNN (dnn_plan.h).
#ifndef HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_
#define HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_

#include <cstdint>

#include "kernels/cuda/conv_shape.h"
#include "kernels/cuda/dnn_plan.h"

namespace holdfast::cuda {

struct ConvolutionProblem : DnnProblem {
  // The graph's names of the tensors (ConvTensors).
  static constexpr int64_t kX = 1, kW = 2, kY = 3;

  Key key() const override;
  void Describe(DnnGraph* graph) const override;
  bool Allows(cudnnBackendNumericalNote_t note) const override;

  ConvPass pass = ConvPass::kForward;
  DType dtype = DType::kFloat32;  // of the elements
  ConvShape shape;
  int64_t alignment = 16;  // bytes that all three tensors are aligned to
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_CONVOLUTION_H_
